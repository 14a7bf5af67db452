"""A fresh server and the real kubectl 1.37: what a new user tries first."""

from __future__ import annotations

import json
import subprocess

import pytest


def test_lists_namespaces(kubectl):
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= {
        line.split()[0] for line in kubectl("get", "ns", "--no-headers").splitlines()
    }


def test_deployment_from_creation_to_deletion(kubectl, server):
    namespace = server.namespace("kubectl-deployment")
    assert "created" in kubectl("-n", namespace, "create", "deployment", "web", "--image=nginx:1.27")
    assert "deployment.apps/web" in kubectl("get", "all", "-A")
    assert "labeled" in kubectl("-n", namespace, "label", "deployment", "web", "tier=front")
    labels = json.loads(kubectl("-n", namespace, "get", "deployment", "web", "-o", "json"))["metadata"]["labels"]
    assert labels == {"app": "web", "tier": "front"}
    assert "deleted" in kubectl("-n", namespace, "delete", "deployment", "web")
    assert "not found" in kubectl("-n", namespace, "get", "deployment", "web", fails=True)


def test_watch_shows_changes_as_they_come(kubectl, server):
    namespace = server.namespace("kubectl-watch")
    watching = kubectl.popen("-n", namespace, "get", "configmaps", "-w", "--no-headers", "-o", "name")
    try:
        for name in ("first", "second"):
            kubectl("-n", namespace, "create", "configmap", name)
            assert watching.stdout.readline().strip() == f"configmap/{name}"
    finally:
        watching.terminate()
        watching.wait(120)
        watching.stdout.close()


def test_api_resources_come_from_discovery(kubectl):
    listed = kubectl("api-resources", "--no-headers")
    for name in ("pods", "deployments", "customresourcedefinitions", "apiservices", "leases"):
        assert f"\n{name} " in f"\n{listed}"


def test_raw_readiness(kubectl):
    text = kubectl("get", "--raw", "/readyz?verbose")
    assert "[+]etcd ok" in text
    assert text.endswith("readyz check passed\n")


def test_apply_is_idempotent_and_edits_show(kubectl, server):
    namespace = server.namespace("kubectl-apply")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  color: red\n"
    assert "created" in kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest)
    assert "configured" in kubectl("-n", namespace, "apply", "-f", "-", stdin=manifest.replace("red", "blue"))
    assert kubectl("-n", namespace, "get", "cm", "settings", "-o", "jsonpath={.data.color}") == "blue"


def test_server_side_apply_conflicts_until_forced(kubectl, server):
    namespace = server.namespace("kubectl-ssa")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\ndata:\n  k: {}\n"
    base = ("-n", namespace, "apply", "--server-side", "-f", "-")
    kubectl(*base, "--field-manager=alpha", stdin=manifest.format("one"))
    refusal = kubectl(*base, "--field-manager=beta", stdin=manifest.format("two"), fails=True)
    assert 'conflict with "alpha"' in refusal
    kubectl(*base, "--field-manager=beta", "--force-conflicts", stdin=manifest.format("two"))
    assert kubectl("-n", namespace, "get", "cm", "owned", "-o", "jsonpath={.data.k}") == "two"


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", '{"data":{"a":"2"}}'),
        ("json", '[{"op":"replace","path":"/data/a","value":"2"}]'),
        ("strategic", '{"data":{"a":"2"}}'),
    ],
)
def test_patch_types(kubectl, server, kind, patch):
    namespace = server.namespace(f"kubectl-patch-{kind}")
    kubectl("-n", namespace, "create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=1")
    kubectl("-n", namespace, "patch", "configmap", "c", "--type", kind, "-p", patch)
    assert json.loads(kubectl("-n", namespace, "get", "cm", "c", "-o", "json"))["data"] == {"a": "2", "b": "1"}


def test_a_wrong_object_is_refused_with_the_field(kubectl, server):
    namespace = server.namespace("kubectl-wrong")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_Valid\n"
    refusal = kubectl("-n", namespace, "create", "-f", "-", stdin=manifest, fails=True)
    assert 'The ConfigMap "Not_Valid" is invalid: metadata.name' in refusal


def test_server_version(kubectl):
    version = json.loads(kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.37.0"


def test_wait_for_deletion(kubectl, server):
    namespace = server.namespace("kubectl-wait")
    kubectl("-n", namespace, "create", "configmap", "gone")
    waiting = kubectl.popen("-n", namespace, "wait", "--for=delete", "configmap/gone", "--timeout=120s")
    kubectl("-n", namespace, "delete", "configmap", "gone")
    output, _ = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, output
    assert isinstance(waiting, subprocess.Popen)
