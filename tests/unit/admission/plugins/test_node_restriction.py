"""NodeRestriction: what kubelets may write."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugins.node_restriction import NodeRestriction
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE
from pilothouse.machinery.user import User

NODE = User("system:node:n1", groups=("system:nodes",))
PODS, NODES = "/v1/pods", "/v1/nodes"
MIRROR = "kubernetes.io/config.mirror"
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u1", "controller": True}


@pytest.fixture
def plugin(environment: Environment) -> NodeRestriction:
    return NodeRestriction(environment)


async def check(plugin: Any, refused: Any, attributes: Any, message: str) -> None:
    """The request passes, or is refused with this message."""
    if not message:
        await plugin.admit(attributes)
        return
    assert (await refused(plugin.admit(attributes))).message.split("is forbidden: ")[-1] == message


async def test_others_are_not_restricted(plugin: Any, make_request: Any) -> None:
    await plugin.admit(make_request(NODES, {"metadata": {"name": "n2"}}))


async def test_a_node_without_a_name(plugin: Any, make_request: Any, refused: Any) -> None:
    nobody = User("system:node:", groups=("system:nodes",))
    attributes = make_request("/v1/configmaps", {"metadata": {"name": "x"}}, user=nobody)
    await check(plugin, refused, attributes, 'could not determine node from user "system:node:"')


def mirror_pod(**changes: Any) -> dict[str, Any]:
    metadata = {"name": "p", "annotations": {MIRROR: "x"}, "ownerReferences": [OWNER], **changes.pop("metadata", {})}
    return {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [], **changes}}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (mirror_pod(), ""),
        (
            mirror_pod(metadata={"annotations": {}}),
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
        ),
        (mirror_pod(nodeName="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (
            mirror_pod(metadata={"ownerReferences": [OWNER, OWNER]}),
            'node "n1" can only create pods with a single owner reference set to itself',
        ),
        (
            mirror_pod(metadata={"ownerReferences": []}),
            'node "n1" can only create pods with an owner reference set to itself',
        ),
        (
            mirror_pod(metadata={"ownerReferences": [{**OWNER, "controller": False}]}),
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        (
            mirror_pod(metadata={"ownerReferences": [{**OWNER, "blockOwnerDeletion": True}]}),
            'node "n1" must not set blockOwnerDeletion on an owner reference',
        ),
        (
            mirror_pod(metadata={"ownerReferences": [{**OWNER, "uid": "other"}]}),
            "node n1 UID mismatch: expected other got u1",
        ),
        (mirror_pod(serviceAccountName="a"), 'node "n1" can not create pods that reference serviceaccounts'),
        (
            mirror_pod(volumes=[{"name": "v", "secret": {"secretName": "s"}}]),
            'node "n1" can not create pods that reference secrets',
        ),
        (
            mirror_pod(volumes=[{"name": "v", "configMap": {"name": "m"}}]),
            'node "n1" can not create pods that reference configmaps',
        ),
        (
            mirror_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            'node "n1" can not create pods that reference persistentvolumeclaims',
        ),
        (
            mirror_pod(volumes=[{"name": "v", "projected": {"sources": [{"podCertificate": {}}]}}]),
            'node "n1" can not create pods that reference podcertificates',
        ),
        (mirror_pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), ""),
    ],
)
async def test_mirror_pods(plugin: Any, make_request: Any, put: Any, refused: Any, pod: Any, message: str) -> None:
    await put(NODES, "n1", metadata={"uid": "u1"})
    await check(plugin, refused, make_request(PODS, pod, user=NODE), message)


async def test_deleting_and_evicting(plugin: Any, make_request: Any, put: Any, refused: Any) -> None:
    await put(PODS, "mine", "ns", spec={"nodeName": "n1"})
    await put(PODS, "other", "ns", spec={"nodeName": "n2"})
    for name, bad in (("mine", False), ("other", True)):
        gone = make_request(PODS, None, {"metadata": {"name": name}}, operation=DELETE, user=NODE)
        why = 'node "n1" can only delete pods with spec.nodeName set to itself' if bad else ""
        await check(plugin, refused, gone, why)
        evicted = make_request("/v1/pods:eviction", {"metadata": {"name": name}}, user=NODE)
        why = "node n1 can only evict pods with spec.nodeName set to itself" if bad else ""
        await check(plugin, refused, evicted, why)
    missing = make_request(PODS, None, {"metadata": {"name": "x"}}, operation=DELETE, user=NODE)
    assert (await refused(plugin.admit(missing))).code == 404


async def test_updates_and_other_subresources(plugin: Any, make_request: Any, refused: Any) -> None:
    pod = {"metadata": {"name": "p"}}
    why = 'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'
    await check(plugin, refused, make_request(PODS, pod, pod, operation=UPDATE, user=NODE), why)
    why = "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed"
    await check(plugin, refused, make_request("/v1/pods:binding", pod, user=NODE), why)


@pytest.mark.parametrize(
    ("node", "change", "message"),
    [
        ("n1", {"status": {"phase": "Running"}}, ""),
        ("n2", {}, 'node "n1" can only update pod status for pods with spec.nodeName set to itself'),
        ("n1", {"metadata": {"name": "p", "labels": {"a": "b"}}}, 'node "n1" cannot update labels through pod status'),
        (
            "n1",
            {"status": {"resourceClaimStatuses": [{"name": "x"}]}},
            'node "n1" cannot update resource claim statues',
        ),
        (
            "n1",
            {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "x"}}},
            'node "n1" cannot update extended resource claim status',
        ),
    ],
)
async def test_pod_status(plugin: Any, make_request: Any, refused: Any, node: str, change: Any, message: str) -> None:
    old = {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": {}}
    attributes = make_request("/v1/pods:status", {**old, **change}, old, operation=UPDATE, user=NODE)
    await check(plugin, refused, attributes, message)


@pytest.mark.parametrize(
    ("operation", "name", "labels", "spec", "message"),
    [
        (CREATE, "n1", {"a": "b", "kubernetes.io/hostname": "n1"}, {}, ""),
        (CREATE, "n2", {}, {}, 'node "n1" is not allowed to modify node "n2"'),
        (
            CREATE,
            "n1",
            {"node-restriction.kubernetes.io/x": "y"},
            {},
            'node "n1" is not allowed to set the following labels: node-restriction.kubernetes.io/x',
        ),
        (
            CREATE,
            "n1",
            {"node-role.kubernetes.io/master": "", "x.k8s.io/y": ""},
            {},
            'node "n1" is not allowed to set the following labels: node-role.kubernetes.io/master, x.k8s.io/y',
        ),
        (CREATE, "n1", {"x.kubelet.kubernetes.io/y": "", "node.kubernetes.io/z": ""}, {}, ""),
        (UPDATE, "n1", {}, {"taints": [{"key": "a"}]}, 'node "n1" is not allowed to modify taints'),
        (UPDATE, "n1", {"x.k8s.io/y": ""}, {}, "is not allowed to modify labels: x.k8s.io/y"),
        (
            UPDATE,
            "n1",
            {},
            {"configSource": {"configMap": {}}},
            'node "n1" is not allowed to update configSource to a new non-nil configSource',
        ),
        (DELETE, "n1", {}, {}, ""),
    ],
)
async def test_nodes(
    plugin: Any, make_request: Any, refused: Any, operation: str, name: str, labels: Any, spec: Any, message: str
) -> None:
    node = {"metadata": {"name": name, "labels": labels}, "spec": spec}
    old = {"metadata": {"name": name}, "spec": {}}
    attributes = make_request(
        NODES,
        None if operation == DELETE else node,
        None if operation == CREATE else old,
        operation=operation,
        namespace="",
        user=NODE,
    )
    await check(plugin, refused, attributes, message)


async def test_cve_2025_5187_owners_of_a_node(plugin: Any, make_request: Any, refused: Any) -> None:
    """A node whose owner does not exist is deleted with it, and could come back with other labels."""
    old = {"metadata": {"name": "n1"}, "spec": {}}
    node = {"metadata": {"name": "n1", "ownerReferences": [OWNER]}, "spec": {}}
    attributes = make_request(NODES, node, old, operation=UPDATE, namespace="", user=NODE)
    await check(plugin, refused, attributes, 'node "n1" is not allowed to modify ownerReferences')


@pytest.mark.parametrize(
    ("resource", "obj", "namespace", "message"),
    [
        ("coordination.k8s.io/v1/leases", {"metadata": {"name": "n1"}}, "kube-node-lease", ""),
        (
            "coordination.k8s.io/v1/leases",
            {"metadata": {"name": "n1"}},
            "ns",
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            "coordination.k8s.io/v1/leases",
            {"metadata": {"name": "n2"}},
            "kube-node-lease",
            "can only access node lease with the same name as the requesting node",
        ),
        (
            "storage.k8s.io/v1/csinodes",
            {"metadata": {"name": "n2"}},
            "",
            "can only access CSINode with the same name as the requesting node",
        ),
        ("resource.k8s.io/v1/resourceslices", {"metadata": {}, "spec": {"nodeName": "n1"}}, "", ""),
        (
            "resource.k8s.io/v1/resourceslices",
            {"metadata": {}, "spec": {"nodeName": "n2"}},
            "",
            "can only create ResourceSlice with the same NodeName as the requesting node",
        ),
        ("/v1/persistentvolumeclaims", {"metadata": {"name": "c"}}, "ns", "may only update PVC status"),
        ("certificates.k8s.io/v1/certificatesigningrequests", {"metadata": {}}, "", ""),
        (
            "certificates.k8s.io/v1/certificatesigningrequests",
            {"metadata": {}, "spec": {"signerName": "kubernetes.io/kubelet-serving", "request": "eA=="}},
            "",
            "unable to parse csr: PEM block type must be CERTIFICATE REQUEST",
        ),
    ],
)
async def test_other_resources(
    plugin: Any, make_request: Any, refused: Any, resource: str, obj: Any, namespace: str, message: str
) -> None:
    await check(plugin, refused, make_request(resource, obj, namespace=namespace, user=NODE), message)


async def test_claim_status(plugin: Any, make_request: Any, refused: Any) -> None:
    old = {"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {"volumeName": "v"}, "status": {}}
    grown = {**old, "metadata": {"name": "c", "resourceVersion": "2"}, "status": {"capacity": {"storage": "1Gi"}}}
    resource = "/v1/persistentvolumeclaims:status"
    await plugin.admit(make_request(resource, grown, old, operation=UPDATE, user=NODE))
    moved = {**old, "spec": {"volumeName": "w"}}
    error = await refused(plugin.admit(make_request(resource, moved, old, operation=UPDATE, user=NODE)))
    assert 'node "n1" is not allowed to update fields other than status.quantity and status.conditions' in error.message


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}, ""),
        (None, "node requested token not bound to a pod"),
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "p"},
            "node requested token with a pod binding without a uid",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "v"},
            "the UID in the bound object reference (v) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "w"},
            "node requested token bound to a pod scheduled on a different node",
        ),
    ],
)
async def test_tokens(plugin: Any, make_request: Any, put: Any, refused: Any, bound: Any, message: str) -> None:
    volumes = [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]
    await put(PODS, "p", "ns", metadata={"uid": "u"}, spec={"nodeName": "n1", "volumes": volumes})
    await put(PODS, "q", "ns", metadata={"uid": "w"}, spec={"nodeName": "n2"})
    token = {"metadata": {}, "spec": {"boundObjectRef": bound}}
    await check(plugin, refused, make_request("/v1/serviceaccounts:token", token, user=NODE), message)


@pytest.mark.parametrize(
    ("audience", "granted", "allowed"),
    [
        ("vault", False, True),
        ("csi", False, True),
        ("disk", False, True),
        ("x", False, False),
        ("x", True, True),
    ],
)
async def test_audiences_of_tokens(
    storage: Any,
    authorizer: Any,
    make_request: Any,
    put: Any,
    refused: Any,
    audience: str,
    granted: bool,
    allowed: bool,
) -> None:
    environment = Environment(storage, authorizer)
    await put("storage.k8s.io/v1/csidrivers", "d", spec={"tokenRequests": [{"audience": "csi"}]})
    await put("storage.k8s.io/v1/csidrivers", "ebs.csi.aws.com", spec={"tokenRequests": [{"audience": "disk"}]})
    await put("/v1/persistentvolumes", "pv", spec={"csi": {"driver": "d"}})
    await put("/v1/persistentvolumeclaims", "c", "ns", spec={"volumeName": "pv"})
    volumes = [
        {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault"}}]}},
        {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "e", "awsElasticBlockStore": {"volumeID": "x"}},
    ]
    await put(PODS, "p", "ns", metadata={"uid": "u"}, spec={"nodeName": "n1", "volumes": volumes})
    if granted:
        authorizer.allowed.add(("request-serviceaccounts-token-audience", audience, "sa"))
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    token = {"metadata": {}, "spec": {"boundObjectRef": bound, "audiences": [audience]}}
    attributes = make_request("/v1/serviceaccounts:token", token, user=NODE, name="sa")
    why = "" if allowed else 'system:node:n1 is not authorized to request tokens for audience "x"'
    await check(NodeRestriction(environment), refused, attributes, why)


async def test_audiences_behind_missing_volumes(plugin: Any, make_request: Any, put: Any, refused: Any) -> None:
    await put("/v1/persistentvolumeclaims", "c", "ns", spec={})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    await put(PODS, "p", "ns", metadata={"uid": "u"}, spec={"nodeName": "n1", "volumes": volumes})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    token = {"metadata": {}, "spec": {"boundObjectRef": bound, "audiences": ["x"]}}
    attributes = make_request("/v1/serviceaccounts:token", token, user=NODE, name="sa")
    why = 'error validating audience "x": persistentvolume "" not found'
    await check(plugin, refused, attributes, why)


REQUEST = {
    "nodeName": "n1",
    "nodeUID": "un",
    "podName": "p",
    "podUID": "up",
    "serviceAccountName": "sa",
    "serviceAccountUID": "us",
    "signerName": "example.com/s",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, ""),
        ({"nodeName": "n2"}, 'PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"'),
        (
            {"nodeUID": "x"},
            'PodCertificateRequest for pod "ns/p" names node UID "x", inconsistent with the running node ("un")',
        ),
        (
            {"podUID": "x"},
            'PodCertificateRequest for pod "ns/p" contains pod UID ("x") which differs from running pod "up"',
        ),
        (
            {"podName": "none"},
            'while retrieving pod "ns/none" named in the PodCertificateRequest: pod "none" not found',
        ),
        (
            {"serviceAccountName": "other"},
            'PodCertificateRequest for pod "ns/p" contains serviceAccountName ("other") that differs from running pod '
            '("sa")',
        ),
        (
            {"serviceAccountUID": "x"},
            'PodCertificateRequest for pod "ns/p" names service account UID "x", which differs from the running '
            'service account ("us")',
        ),
        (
            {"signerName": "example.com/other"},
            'pod "ns/p" does not mount a podCertificate projected volume for signer "example.com/other"',
        ),
    ],
)
async def test_pod_certificates(
    plugin: Any, make_request: Any, put: Any, refused: Any, change: Any, message: str
) -> None:
    await put(NODES, "n1", metadata={"uid": "un"})
    await put("/v1/serviceaccounts", "sa", "ns", metadata={"uid": "us"})
    volumes = [{"name": "v", "projected": {"sources": [{"podCertificate": {"signerName": "example.com/s"}}]}}]
    spec = {"nodeName": "n1", "serviceAccountName": "sa", "volumes": volumes}
    await put(PODS, "p", "ns", metadata={"uid": "up"}, spec=spec)
    obj = {"metadata": {"name": "r"}, "spec": {**REQUEST, **change}}
    attributes = make_request("certificates.k8s.io/v1/podcertificaterequests", obj, user=NODE)
    await check(plugin, refused, attributes, message)
