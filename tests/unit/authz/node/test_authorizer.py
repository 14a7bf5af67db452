import asyncio
import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, Union
from pilothouse.authz.node.authorizer import NodeAuthorizer
from pilothouse.authz.node.graph import Graph
from pilothouse.authz.node.references import MIRROR_ANNOTATION, POD_FIELDS, references_of_pod, secrets_of_volume
from pilothouse.machinery import fields
from pilothouse.machinery.protobuf import decode_partly, encode_message
from pilothouse.machinery.user import User

NODE = User("system:node:n1", groups=("system:nodes",))


def pod(name="p", node="n1", namespace="ns", annotations=None, status=None, **spec):
    return {
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"nodeName": node, **spec},
        "status": status or {},
    }


POD = pod(
    serviceAccountName="sa",
    imagePullSecrets=[{"name": "pull"}],
    initContainers=[{"envFrom": [{"secretRef": {"name": "s-from"}}, {"configMapRef": {"name": "c-from"}}]}],
    containers=[
        {"env": [{"valueFrom": {"secretKeyRef": {"name": "s-key"}}}]},
        {"env": [{"valueFrom": {"configMapKeyRef": {"name": "c-key"}}}]},
    ],
    ephemeralContainers=[{"envFrom": [{"secretRef": {"name": "s-debug"}}]}],
    volumes=[
        {"name": "v1", "secret": {"secretName": "s-volume"}},
        {"name": "v2", "configMap": {"name": "c-volume"}},
        {"name": "v3", "projected": {"sources": [{"secret": {"name": "s-proj"}}, {"configMap": {"name": "c-proj"}}]}},
        {"name": "v4", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "v5", "ephemeral": {}},
        {"name": "v6", "csi": {"nodePublishSecretRef": {"name": "s-csi"}}},
        {"name": "v7", "cephfs": {"secretRef": {"name": "s-ceph"}}},
        {"name": "v8", "azureFile": {"secretName": "s-azure"}},
        {"name": "v9", "emptyDir": {}},
    ],
    resourceClaims=[{"name": "a", "resourceClaimName": "direct"}, {"name": "b", "resourceClaimTemplateName": "t"}],
    status={
        "resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    },
)


def test_references_of_a_pod():
    found = references_of_pod(POD)
    by_kind = {kind: {name for other, name in found if other == kind} for kind, _ in found}
    assert by_kind == {
        "serviceaccounts": {"sa"},
        "secrets": {"pull", "s-from", "s-key", "s-debug", "s-volume", "s-proj", "s-csi", "s-ceph", "s-azure"},
        "configmaps": {"c-from", "c-key", "c-volume", "c-proj"},
        "persistentvolumeclaims": {"claim", "p-v5"},
        "resourceclaims": {"direct", "made", "extended"},
    }
    mirror = {**POD, "metadata": {**POD["metadata"], "annotations": {"kubernetes.io/config.mirror": "x"}}}
    assert references_of_pod(mirror) == set()


@pytest.mark.parametrize(
    ("source", "secrets"),
    [
        ({"azureFile": {"secretName": "s"}}, {("home", "s")}),
        ({"azureFile": {"secretName": "s", "secretNamespace": "x"}}, {("x", "s")}),
        ({"rbd": {"secretRef": {"name": "s"}}}, {("home", "s")}),
        ({"iscsi": {"secretRef": {"name": "s", "namespace": "x"}}}, {("x", "s")}),
        ({"cinder": {"secretRef": {"name": "s"}}}, {("", "s")}),
        (
            {"csi": {"nodeStageSecretRef": {"name": "s", "namespace": "x"},
                     "controllerPublishSecretRef": {"name": "hidden", "namespace": "x"}}},
            {("x", "s")},
        ),
        ({"hostPath": {}}, set()),
    ],
)  # fmt: skip
def test_secrets_of_a_volume(source, secrets):
    assert secrets_of_volume({"spec": {"claimRef": {"namespace": "home"}, **source}}) == secrets


def ask(graph, verb, resource, name="", namespace="ns", group="", subresource="", selector=(), user=NODE):
    attributes = Attributes(
        user, verb, resource=resource, name=name, namespace=namespace, group=group, subresource=subresource,
        field_selector=selector,
    )  # fmt: skip
    return NodeAuthorizer(graph).decide(attributes)


@pytest.fixture
def graph():
    graph = Graph()
    graph.put("pods", POD)
    graph.put("pods", pod("other", "n2", volumes=[{"secret": {"secretName": "theirs"}}]))
    volume = {"claimRef": {"namespace": "ns", "name": "claim"}, "rbd": {"secretRef": {"name": "s-pv"}}}
    graph.put("persistentvolumes", {"metadata": {"name": "pv"}, "spec": volume})
    graph.put("volumeattachments", {"metadata": {"name": "va"}, "spec": {"nodeName": "n1"}})
    graph.put("resourceslices", {"metadata": {"name": "slice"}, "spec": {"nodeName": "n1"}})
    request = {"metadata": {"name": "pcr", "namespace": "ns"}, "spec": {"nodeName": "n1"}}
    graph.put("podcertificaterequests", request)
    return graph


OWN = (fields.Requirement("spec.nodeName", "=", "n1"),)
NO_RELATION = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (("get", "secrets", "s-volume"), None),
        (("watch", "secrets", "s-volume"), None),
        (("get", "secrets", "s-pv"), None),
        (("get", "secrets", "theirs"), NO_RELATION),
        (("get", "secrets", "s-volume", "elsewhere"), NO_RELATION),
        (("get", "secrets", "s-volume", ""), "can only read namespaced object of this type"),
        (("list", "secrets"), "No Object name found"),
        (("update", "secrets", "s-volume"), "can only read resources of this type"),
        (("get", "configmaps", "c-key"), None),
        (("get", "persistentvolumeclaims", "claim"), None),
        (("list", "persistentvolumeclaims", "claim"), "can only get individual resources of this type"),
        (("patch", "persistentvolumeclaims", "claim", "ns", "", "status"), None),
        (("get", "persistentvolumeclaims", "claim", "ns", "", "status"), "can only get/update/patch this type"),
        (("get", "persistentvolumes", "pv", ""), None),
        (("get", "persistentvolumes", "px", ""), NO_RELATION),
        (("get", "resourceclaims", "made", "ns", "resource.k8s.io"), None),
        (("get", "volumeattachments", "va", "", "storage.k8s.io"), None),
        (("get", "volumeattachments", "vb", "", "storage.k8s.io"), NO_RELATION),
        (("create", "serviceaccounts", "sa", "ns", "", "token"), None),
        (("get", "serviceaccounts", "sa"), None),
        (("create", "serviceaccounts", "default", "ns", "", "token"), NO_RELATION),
        (("create", "serviceaccounts", ""), "can only create tokens for individual service accounts"),
        (("create", "serviceaccounts", "sa"), "can only create token subresource of serviceaccount"),
        (("get", "leases", "n1", "kube-node-lease", "coordination.k8s.io"), None),
        (("create", "leases", "", "kube-node-lease", "coordination.k8s.io"), None),
        (("get", "leases", "n2", "kube-node-lease", "coordination.k8s.io"),
         "can only access node lease with the same name as the requesting node"),
        (("get", "leases", "n1", "ns", "coordination.k8s.io"),
         'can only access leases in the "kube-node-lease" system namespace'),
        (("list", "leases", "", "kube-node-lease", "coordination.k8s.io"),
         "can only get, create, update, patch, or delete a node lease"),
        (("update", "csinodes", "n1", "", "storage.k8s.io"), None),
        (("update", "csinodes", "n2", "", "storage.k8s.io"),
         "can only access CSINode with the same name as the requesting node"),
        (("update", "csinodes", "n1", "", "storage.k8s.io", "status"),
         "CSINode status access requires CSIVolumeHealth feature"),
        (("create", "resourceslices", "", "", "resource.k8s.io"), None),
        (("update", "resourceslices", "slice", "", "resource.k8s.io"), None),
        (("list", "resourceslices", "", "", "resource.k8s.io", "", OWN), None),
        (("list", "resourceslices", "", "", "resource.k8s.io"),
         "can only list/watch/deletecollection resourceslices with nodeName field selector"),
        (("get", "podcertificaterequests", "pcr", "ns", "certificates.k8s.io"), None),
        (("delete", "podcertificaterequests", "pcr", "ns", "certificates.k8s.io"),
         "nodes may not delete podcertificaterequests"),
        (("get", "nodes", "n1", ""), None),
        (("get", "nodes", "n2", ""), "node 'n1' cannot read 'n2', only its own Node object"),
        (("list", "nodes", "", ""), "node 'n1' cannot read all nodes, only its own Node object"),
        (("patch", "nodes", "n2", "", "", "status"), None),
        (("delete", "nodes", "n1", ""), ""),
        (("get", "pods", "p"), None),
        (("get", "pods", "other"), NO_RELATION),
        (("list", "pods"), "can only list/watch pods with spec.nodeName field selector"),
        (("list", "pods", "", "", "", "", OWN), None),
        (("create", "pods", "x", "ns", "", "eviction"), None),
        (("create", "pods", "x", "ns", "", "binding"), ""),
        (("list", "services"), None),
        (("create", "services"), ""),
        (("create", "events"), None),
    ],
)  # fmt: skip
def test_decisions(graph, question, reason):
    decision = ask(graph, *question)
    assert decision == ((Decision.ALLOW, "") if reason is None else (Decision.NO_OPINION, reason))


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (User("system:node:n1"), ""),
        (User("alice", groups=("system:nodes",)), ""),
        (User("system:node:", groups=("system:nodes",)), 'unknown node for user "system:node:"'),
    ],
)
def test_who_is_a_node(graph, user, reason):
    assert ask(graph, "get", "pods", "p", user=user) == (Decision.NO_OPINION, reason)


def test_connections_end_with_what_made_them(graph):
    graph.put("pods", pod("second", volumes=[{"secret": {"secretName": "s-volume"}}]))
    graph.remove("pods", "ns", "p")
    assert ask(graph, "get", "secrets", "s-volume")[0] is Decision.ALLOW
    assert ask(graph, "get", "secrets", "s-pv")[1] == NO_RELATION
    graph.remove("pods", "ns", "second")
    assert ask(graph, "get", "secrets", "s-volume")[1] == NO_RELATION
    graph.put("volumeattachments", {"metadata": {"name": "va"}, "spec": {"nodeName": "n2"}})
    assert ask(graph, "get", "volumeattachments", "va", "", "storage.k8s.io")[1] == NO_RELATION


class Filling:
    """Tells a graph of objects, and is not done before it is told so."""

    def __init__(self):
        self._done = asyncio.Event()

    @property
    def has_synced(self):
        return self._done.is_set()

    async def wait_synced(self):
        await self._done.wait()

    def finish(self):
        self._done.set()


async def test_a_graph_that_is_being_filled_refuses_nobody_for_what_it_does_not_know(graph):
    filling = Filling()
    graph.fed_by(filling)
    union = Union([("Node", NodeAuthorizer(graph))])

    def question(name):
        return Attributes(NODE, "get", resource="secrets", name=name, namespace="ns")

    assert await union.authorize(question("s-volume")) == (Decision.ALLOW, "")
    assert await union.authorize(Attributes(User("x"), "get", resource="secrets")) == (Decision.NO_OPINION, "")
    later, never = (asyncio.ensure_future(union.authorize(question(name))) for name in ("s-later", "s-never"))
    await asyncio.sleep(0)
    assert not later.done() and not never.done()
    graph.put("pods", pod("late", volumes=[{"secret": {"secretName": "s-later"}}]))
    filling.finish()
    assert await later == (Decision.ALLOW, "")
    assert await never == (Decision.NO_OPINION, f"Node: {NO_RELATION}")


def test_rules():
    authorizer = NodeAuthorizer(Graph())
    assert authorizer.rules_for(NODE, "ns")().error == "node authorizer does not support user rule resolution"
    assert authorizer.rules_for(User("x"), "ns")() == ((), (), False, "")


names = st.sampled_from(["a", "b"])
steps = st.tuples(st.sampled_from(["put", "remove"]), names, st.sampled_from(["n1", "n2"]), st.lists(names, max_size=2))


@given(st.lists(steps, max_size=12))
def test_graph_equals_a_search_over_the_pods(history):
    graph, pods = Graph(), {}
    for operation, name, node, secrets in history:
        if operation == "put":
            pods[name] = (node, set(secrets))
            graph.put("pods", pod(name, node, volumes=[{"secret": {"secretName": s}} for s in secrets]))
        else:
            pods.pop(name, None)
            graph.remove("pods", "ns", name)
        for node_name in ("n1", "n2"):
            for secret in ("a", "b"):
                wanted = any(at == node_name and secret in held for at, held in pods.values())
                assert graph.entitled(node_name, "secrets", "ns", secret) == wanted
    for name in list(pods):
        graph.remove("pods", "ns", name)
    assert (graph._nodes, graph._edges) == ({}, {})


def test_what_is_read_of_a_stored_pod_is_all_that_is_looked_at():
    message = encode_message(types.struct_of("v1", "Pod"), POD)
    read = decode_partly(types.struct_of("v1", "Pod"), message, frozenset({"metadata.name", *POD_FIELDS}))
    assert references_of_pod(read) == references_of_pod(POD)
    assert read["spec"]["nodeName"] == "n1"
    mirrored = encode_message(
        types.struct_of("v1", "Pod"), {**POD, "metadata": {"annotations": {MIRROR_ANNOTATION: ""}}}
    )
    assert references_of_pod(decode_partly(types.struct_of("v1", "Pod"), mirrored, frozenset(POD_FIELDS))) == set()


def test_what_pods_have_in_common_is_kept_once():
    """References of a workload's pods, which run on as many nodes, took 1,030 bytes for each."""

    def decoded(number):
        volumes = [{"configMap": {"name": "settings"}}, {"secret": {"secretName": "keys"}}]
        made = pod(
            f"pod-{number}", f"node-{number}", f"ns-{number % 10}", serviceAccountName="default", volumes=volumes
        )
        return orjson.loads(orjson.dumps(made))

    graph = Graph()
    tracemalloc.start()
    try:
        for number in range(2000):
            graph.put("pods", decoded(number))
        assert tracemalloc.get_traced_memory()[0] < 2000 * 500
    finally:
        tracemalloc.stop()
    graph.remove("pods", "ns-7", "pod-7")
    assert not graph.entitled("node-7", "pods", "ns-7", "pod-7")
    assert not graph.entitled("node-7", "secrets", "ns-7", "keys")
    assert graph.entitled("node-17", "secrets", "ns-7", "keys")
