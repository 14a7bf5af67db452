"""Texts of a megabyte for patterns that repeat a group.

A pattern that may give back what a group has taken notes each time that the group matched, in 100 to 200 bytes: a name
like ``a.a.a.`` of 900 KB once made the process grow by a hundred megabytes in one call of 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.robustness.attacks.second_client import processor_seconds

CORE = "/api/v1/namespaces/default"
DOTTED = "a." * 400_000
GROUP = "texts.example"
ANSWERED = (200, 201, 400, 403, 404, 422, 500)


def pod(**spec: Any) -> dict[str, Any]:
    given = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "attack"}, "spec": given}


def of(version: str, kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "attack"}, **fields}


def windows(user: str) -> dict[str, Any]:
    return pod(os={"name": "windows"}, securityContext={"windowsOptions": {"runAsUserName": user}})


def revision(text: str) -> dict[str, Any]:
    return of("apps/v1", "ControllerRevision", revision=1, data={"a": text})


TEXTS: list[tuple[str, str, str, Any]] = [
    ("a dotted name", "POST", f"{CORE}/configmaps", of("v1", "ConfigMap", metadata={"name": DOTTED + "a"})),
    (
        "a dotted finalizer",
        "POST",
        f"{CORE}/configmaps",
        of("v1", "ConfigMap", metadata={"name": "attack", "finalizers": [DOTTED + "a/b"]}),
    ),
    ("a dotted image", "POST", f"{CORE}/pods", pod(containers=[{"name": "c", "image": DOTTED + "a/b"}])),
    ("a dotted user of Windows", "POST", f"{CORE}/pods", windows(DOTTED + "a\\b")),
    (
        "a field selector of one value",
        "GET",
        f"{CORE}/configmaps?fieldSelector=metadata.name%3D{'a' * 800_000}",
        None,
    ),
]


@pytest.fixture(scope="module", autouse=True)
def account(victim: Any) -> None:
    """Pods are looked at only where there is an account for them."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert victim.call("POST", f"{CORE}/serviceaccounts", body).status in (201, 409)
    assert victim.call("POST", f"{CORE}/pods?dryRun=All", pod()).status == 201


@pytest.mark.parametrize(("what", "method", "path", "body"), TEXTS, ids=[text[0] for text in TEXTS])
def test_long_texts(victim: Any, what: str, method: str, path: str, body: Any) -> None:
    with victim.attacked(what, allowance=24 << 20):
        assert victim.call(method, path, body).status in ANSWERED


def test_a_long_string_in_a_raw_value(victim: Any) -> None:
    """A patch of the document leaves such values as they are, but for their white space."""
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    assert victim.call("POST", path, revision("a " * 350_000)).status == 201
    with victim.attacked("a raw value with a long string", allowance=24 << 20):
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
        assert victim.call("PATCH", f"{path}/attack", patch, "application/json-patch+json").status == 200


def test_a_long_string_in_yaml_with_another_escape(victim: Any) -> None:
    """Where a slash is escaped somewhere, all strings in quotes are looked through for it."""
    body = b'a: "' + b"x" * 2_900_000 + b'"\nb: "\\/"\n'
    with victim.attacked("a long string in YAML"):
        assert victim.call("POST", f"{CORE}/configmaps", body, "application/yaml").status == 400


@pytest.fixture(scope="module")
def declare(victim: Any) -> Callable[[str, dict[str, Any], list[dict[str, Any]]], str]:
    """Makes a custom resource of one field with rules; gives the path of its objects."""

    def make(plural: str, field: dict[str, Any], rules: list[dict[str, Any]]) -> str:
        schema = {"type": "object", "properties": {"field": field}, "x-kubernetes-validations": rules}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        victim.establish(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "scope": "Namespaced",
                    "names": {"plural": plural, "kind": plural.title()},
                    "versions": [version],
                },
            }
        )
        return f"/apis/{GROUP}/v1/namespaces/default/{plural}"

    return make


def test_digits_of_a_duration(victim: Any, declare: Callable[..., str]) -> None:
    """A number with a unit may stand anywhere in a duration; for each digit the rest of them was read once more."""
    path = declare("spans", {"type": "string", "format": "duration"}, [{"rule": "self.field != duration('1h')"}])
    body = of(f"{GROUP}/v1", "Spans", field="2h" + "1" * 50_000)
    worked = processor_seconds(victim.server.process.pid)
    before = worked()
    with victim.attacked("digits of a duration"):
        assert victim.call("POST", path, body).status in ANSWERED
    assert worked() - before < 5


def test_names_of_hosts(victim: Any, declare: Callable[..., str]) -> None:
    """Their pattern took 110 ms to compile, in one call, and wrote a line to the log for each of them."""
    path = declare("hosts", {"type": "array", "items": {"type": "string", "format": "hostname"}}, [])
    body = of(f"{GROUP}/v1", "Hosts", field=[f"h{number}.example" for number in range(20_000)])
    with victim.attacked("20,000 names of hosts"):
        assert victim.call("POST", path, body).status == 201
    assert b"out of memory" not in victim.server.log.read_bytes()
