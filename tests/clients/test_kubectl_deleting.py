"""kubectl 1.37 deletes with each cascade; with no garbage collector the finalizers it would act on stay to be seen."""

from __future__ import annotations

import pytest

FINALIZERS = {"foreground": ["foregroundDeletion"], "orphan": ["orphan"]}


def test_background_deletion_removes_at_once(kubectl, server, read, kind, manifest):
    namespace = server.namespace(f"delete-background-{kind}")
    kubectl("-n", namespace, "create", "-f", "-", stdin=manifest)
    said = kubectl("-n", namespace, "delete", kind, "thing", "--cascade=background")
    assert said.endswith(f'"thing" deleted from {namespace} namespace\n')
    assert read(namespace, kind) is None
    assert "NotFound" in kubectl("-n", namespace, "delete", kind, "thing", fails=True)


@pytest.mark.parametrize("cascade", list(FINALIZERS))
@pytest.mark.parametrize("kind", ["deployment", "job", "configmap", "role"])
def test_other_cascades_leave_finalizers(kubectl, server, read, manifests, kind, cascade):
    namespace = server.namespace(f"delete-{cascade}-{kind}")
    kubectl("-n", namespace, "create", "-f", "-", stdin=manifests[kind])
    kubectl("-n", namespace, "delete", kind, "thing", f"--cascade={cascade}", "--wait=false")
    left = read(namespace, kind)["metadata"]
    assert left["finalizers"] == FINALIZERS[cascade]
    assert left["deletionTimestamp"]
    assert left["deletionGracePeriodSeconds"] == 0
    kubectl(
        "-n", namespace, "patch", kind, "thing", "--type=json", '-p=[{"op":"remove","path":"/metadata/finalizers"}]'
    )
    assert read(namespace, kind) is None


def test_deletion_waits_for_finalizers(kubectl, server, read):
    namespace = server.namespace("delete-waits")
    held = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing, finalizers: [example.com/hold]}\n"
    kubectl("-n", namespace, "create", "-f", "-", stdin=held)
    deleting = kubectl.popen("-n", namespace, "delete", "configmap", "thing")
    assert deleting.stdout.readline() == f'configmap "thing" deleted from {namespace} namespace\n'
    assert deleting.poll() is None
    assert read(namespace, "configmap")["metadata"]["deletionTimestamp"]
    kubectl("-n", namespace, "patch", "configmap", "thing", "--type=merge", '-p={"metadata":{"finalizers":null}}')
    deleting.communicate(timeout=120)
    assert deleting.returncode == 0
    assert read(namespace, "configmap") is None


def test_deletes_by_label_and_all_of_a_kind(kubectl, server):
    namespace = server.namespace("delete-many")
    for name in ("a", "b", "c"):
        kubectl("-n", namespace, "create", "configmap", name)
    kubectl("-n", namespace, "label", "configmap", "a", "b", "tier=front")
    kubectl("-n", namespace, "delete", "configmap", "-l", "tier=front")
    assert kubectl("-n", namespace, "get", "configmap", "-o", "name") == "configmap/c\n"
    kubectl("-n", namespace, "delete", "configmap", "--all")
    assert kubectl("-n", namespace, "get", "configmap", "-o", "name") == ""


def test_a_pod_goes_gracefully_or_by_force(kubectl, server):
    namespace = server.namespace("delete-pod")
    for name in ("unscheduled", "bound"):
        kubectl("-n", namespace, "run", name, "--image=nginx")
    kubectl("-n", namespace, "delete", "pod", "unscheduled")
    binding = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n1"}}
    assert server.call("POST", f"/api/v1/namespaces/{namespace}/pods/bound/binding", binding)[0] == 201
    kubectl("-n", namespace, "delete", "pod", "bound", "--wait=false")
    period = "jsonpath={.metadata.deletionGracePeriodSeconds}"
    assert kubectl("-n", namespace, "get", "pod", "bound", "-o", period) == "30"
    kubectl("-n", namespace, "delete", "pod", "bound", "--force")
    assert kubectl("-n", namespace, "get", "pods", "-o", "name") == ""
