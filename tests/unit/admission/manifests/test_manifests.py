"""Manifests from files: what is taken, what is refused and how, and that changes come into force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from pilothouse.admission.configuration import ConfigurationError
from pilothouse.admission.environment import Environment
from pilothouse.admission.manifests.files import ManifestError, read_documents
from pilothouse.admission.manifests.loading import load_manifests
from pilothouse.admission.plugins.mutating_admission_policy import MutatingAdmissionPolicy
from pilothouse.admission.plugins.validating_admission_policy import ValidatingAdmissionPolicy
from pilothouse.admission.plugins.validating_admission_webhook import ValidatingAdmissionWebhook
from pilothouse.apis.gates import default_gates
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher

VERSION = "admissionregistration.k8s.io/v1"
HOOKS = ("ValidatingWebhookConfiguration",)
POLICIES = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
RULE = {"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


def hooks(name: str = "h.static.k8s.io", **client: Any) -> Object:
    hook = {
        "name": "one.example.com",
        "clientConfig": client or {"url": "https://127.0.0.1:1/"},
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"apiVersion": VERSION, "kind": HOOKS[0], "metadata": {"name": name}, "webhooks": [hook]}


def policy(name: str = "p.static.k8s.io", **spec: Any) -> Object:
    body = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "false"}], **spec}
    return {"apiVersion": VERSION, "kind": POLICIES[0], "metadata": {"name": name}, "spec": body}


def binding(name: str = "b.static.k8s.io", of: str = "p.static.k8s.io", **spec: Any) -> Object:
    body = {"policyName": of, "validationActions": ["Deny"], **spec}
    return {"apiVersion": VERSION, "kind": POLICIES[1], "metadata": {"name": name}, "spec": body}


def write(folder: Path, *objects: Object, name: str = "a.yaml") -> None:
    (folder / name).write_bytes(b"\n---\n".join(orjson.dumps(each) for each in objects))


def names(folder: Path, kinds: tuple[str, ...], kind: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in load_manifests(str(folder), kinds).objects[kind]]


def test_documents_of_files(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("--- # first\nb: 1\n---\n\n---\nb: 2\n")
    (tmp_path / "a.JSON").write_text('{"a": 1}')
    (tmp_path / "c.txt").write_text("c: 1")
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "e.yaml").write_text("")
    documents, first = read_documents(str(tmp_path))
    assert [(Path(each.path).name, each.data) for each in documents] == [
        ("a.JSON", b'{"a": 1}'),
        ("b.yml", b"b: 1"),
        ("b.yml", b"b: 2"),
    ]
    (tmp_path / "a.JSON").unlink()
    assert read_documents(str(tmp_path))[1] != first
    (tmp_path / "b.yml").unlink()
    assert read_documents(str(tmp_path)) == ([], "")
    with pytest.raises(ManifestError, match=r'failed to read manifest directory ".*": open .*: no such file'):
        read_documents(str(tmp_path / "gone"))


def test_lists_defaults_and_order(tmp_path: Path) -> None:
    listed = {"apiVersion": VERSION, "kind": f"{HOOKS[0]}List", "items": [hooks("b.static.k8s.io")]}
    write(tmp_path, {"apiVersion": "v1", "kind": "List", "items": [hooks("c.static.k8s.io"), listed]})
    write(tmp_path, hooks("a.static.k8s.io"), name="z.yaml")
    assert names(tmp_path, HOOKS, HOOKS[0]) == ["a.static.k8s.io", "b.static.k8s.io", "c.static.k8s.io"]
    loaded = load_manifests(str(tmp_path), HOOKS).objects[HOOKS[0]][0]["webhooks"][0]
    assert (loaded["failurePolicy"], loaded["timeoutSeconds"], loaded["matchPolicy"]) == ("Fail", 10, "Equivalent")


@pytest.mark.parametrize(
    ("kinds", "objects", "why"),
    [
        (HOOKS, [hooks("plain")], 'must have a name ending with ".static.k8s.io"'),
        (HOOKS, [hooks("")], "must have a name"),
        (HOOKS, [hooks(), hooks()], 'duplicate name "h.static.k8s.io" found in file'),
        (
            HOOKS,
            [hooks(service={"namespace": "n", "name": "s"})],
            "clientConfig.service is not supported for static manifests; use clientConfig.url instead",
        ),
        (HOOKS, [{**hooks(), "extra": 1}], 'strict decoding error: unknown field "extra"'),
        (HOOKS, [policy()], "unsupported resource type *v1.ValidatingAdmissionPolicy"),
        (HOOKS, [{**hooks(), "apiVersion": "admissionregistration.k8s.io/v1beta1"}], "unsupported resource type *v1b"),
        (HOOKS, [{**hooks(), "apiVersion": "apps/v1"}], 'is registered for version "apps/v1"'),
        (HOOKS, [{"kind": "x"}], "Object 'apiVersion' is missing in '{\"kind\":\"x\"}'"),
        (HOOKS, [hooks(url="http://example.com")], 'ValidatingWebhookConfiguration "h.static.k8s.io": '),
        (POLICIES, [policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"})], "spec.paramKind is not supported"),
        (POLICIES, [policy(), binding(of="other")], 'spec.policyName "other" must end with ".static.k8s.io"'),
        (
            POLICIES,
            [binding()],
            'binding "b.static.k8s.io" references policy "p.static.k8s.io" which does not exist in the manifest dir',
        ),
        (
            POLICIES,
            [policy(), binding(paramRef={"name": "x", "parameterNotFoundAction": "Deny"})],
            "spec.paramRef is not supported for static manifests",
        ),
        (POLICIES, [policy(validations=[{"expression": "oops"}])], "compilation failed"),
    ],
)
def test_refusals(tmp_path: Path, kinds: tuple[str, ...], objects: list[Object], why: str) -> None:
    write(tmp_path, *objects)
    with pytest.raises(ManifestError) as caught:
        load_manifests(str(tmp_path), kinds)
    assert why in str(caught.value)


def configured(folder: Any, kind: str = "ValidatingAdmissionPolicyConfiguration") -> Object:
    return {"apiVersion": "apiserver.config.k8s.io/v1", "kind": kind, "staticManifestsDir": str(folder)}


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("relative", 'staticManifestsDir: Invalid value: "relative": must be an absolute file path'),
        ("/gone/away", "unable to read: stat /gone/away: no such file or directory"),
        (__file__, "must be a directory"),
    ],
)
def test_folders_that_cannot_be_used(environment: Environment, folder: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ValidatingAdmissionPolicy(environment, configured(folder))
    assert why in str(caught.value)


def test_the_gate_and_the_kind(environment: Environment, cacher: Cacher, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no kind"):
        MutatingAdmissionPolicy(environment, configured(tmp_path))
    environment = Environment(StorageFactory(cacher, gates=default_gates() - {"ManifestBasedAdmissionControlConfig"}))
    with pytest.raises(ConfigurationError, match="staticManifestsDir: Forbidden: staticManifestsDir requires the"):
        ValidatingAdmissionPolicy(environment, configured(tmp_path))


async def test_policies_of_files_hold_even_for_policies(
    environment: Environment, tmp_path: Path, make_request: Any, refused: Any, put: Any
) -> None:
    await put("/v1/namespaces", "ns")
    write(tmp_path, policy(), binding())
    plugin = ValidatingAdmissionPolicy(environment, configured(tmp_path))
    stored = make_request(
        f"{VERSION}/validatingadmissionpolicies",
        {"metadata": {"name": "x"}, "spec": {}},
        namespace="",
        kind=GroupVersionKind(*VERSION.split("/"), "ValidatingAdmissionPolicy"),
    )
    obj = {"metadata": {"name": "x"}}
    plain = make_request("/v1/configmaps", obj, kind=GroupVersionKind("", "v1", "ConfigMap"))
    for attributes in (stored, plain):
        error = await refused(plugin.validate(attributes))
        assert "ValidatingAdmissionPolicy 'p.static.k8s.io' with binding 'b.static.k8s.io' denied" in error.message
    write(tmp_path, policy(validations=[{"expression": "true"}]), binding())
    await plugin.reload()
    await plugin.validate(plain)
    write(tmp_path, policy("nameless"))
    await plugin.reload()
    await plugin.validate(plain)
    (tmp_path / "a.yaml").unlink()
    await plugin.reload()
    assert await plugin.policies.current() == ()


async def test_webhooks_of_files_come_first(environment: Environment, tmp_path: Path, put: Any) -> None:
    write(tmp_path, hooks())
    plugin = ValidatingAdmissionWebhook(environment, configured(tmp_path, "WebhookAdmissionConfiguration"))
    await put(f"{VERSION}/validatingwebhookconfigurations", "a", webhooks=hooks()["webhooks"])
    assert [hook.uid for hook in await plugin.hooks.current()] == [
        "manifest/h.static.k8s.io/one.example.com/0",
        "a/one.example.com/0",
    ]
    assert plugin.concerns("CREATE", GroupResource(VERSION.split("/")[0], "validatingwebhookconfigurations"), "")
    assert not plugin.concerns("CREATE", GroupResource("authentication.k8s.io", "tokenreviews"), "")
    await plugin.close()
