"""kube-apiserver and Pilothouse on one etcd: what one has written the other reads as it was, in the same bytes."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from pilothouse.machinery import protobuf
from pilothouse.storage.backends.etcd import EtcdBackend, Transport
from pilothouse.testing.etcd_process import EtcdCluster

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer, free_port
from stored_bytes import canonical, plain

pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD")), reason="KUBE_APISERVER and ETCD name no binaries"
)

VALUES = Path(__file__).parent.parent / "unit" / "registry" / "store" / "stored_values.jsonl"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tools.facts.example.com"},
    "spec": {
        "group": "facts.example.com",
        "scope": "Namespaced",
        "names": {"plural": "tools", "singular": "tool", "kind": "Tool", "listKind": "ToolList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}],
            }
        ],
    },
}
GIVEN_BY_SERVERS = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")
FIELDS = "?fieldManager=interop"


def manifests():
    """(collection, object) of many kinds, from the recorded values, in an order in which they can be created."""
    yield "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "facts"}}
    yield "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION
    for line in VALUES.read_text().splitlines():
        row = json.loads(line)
        obj = row.get("object")
        if obj is None or obj["kind"] in ("Event", "Tool", "CustomResourceDefinition"):
            continue
        for name in GIVEN_BY_SERVERS:
            obj["metadata"].pop(name, None)
        obj.pop("status", None)
        strip_allocated(obj)
        yield collection_of(obj), obj
    event = {"involvedObject": {"kind": "Pod", "namespace": "facts", "name": "p"}, "reason": "R", "message": "m"}
    yield "/api/v1/namespaces/facts/events", {**event, "metadata": {"name": "e"}, "type": "Normal"}


def strip_allocated(obj):
    spec = obj.get("spec", {})
    if obj["kind"] == "Service":
        for name in ("clusterIP", "clusterIPs"):
            spec.pop(name, None)
    if obj["kind"] == "Job":
        for name in ("selector",):
            spec.pop(name, None)
        spec["template"].get("metadata", {}).pop("labels", None)
        obj["metadata"].pop("labels", None)


PLURALS = {"EndpointSlice": "endpointslices", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}


def collection_of(obj):
    group = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
    kind = obj["kind"].lower()
    plural = PLURALS.get(obj["kind"]) or (kind[:-1] + "ies" if kind.endswith("cy") else kind + "s")
    plural = plural if not kind.endswith("class") else kind + "es"
    namespace = obj["metadata"].get("namespace")
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


def create_all(server):
    """Create everything that the server takes; gives the paths of what was made."""
    made = []
    for collection, obj in manifests():
        status, answer = server.call("POST", collection + FIELDS, obj)
        if status == 201:
            made.append(f"{collection}/{obj['metadata']['name']}")
        else:
            assert status in (404, 403, 422, 409), (collection, answer)
    tool = {
        "apiVersion": "facts.example.com/v1",
        "kind": "Tool",
        "metadata": {"name": "t"},
        "spec": {"b": 1.5, "a": "<"},
    }
    collection = "/apis/facts.example.com/v1/namespaces/facts/tools"
    for _ in range(200):
        status, _ = server.call("POST", collection + FIELDS, tool)
        if status == 201:
            break
    assert status == 201
    return [*made, f"{collection}/t"]


async def read_values(urls):
    backend = EtcdBackend(Transport(urls))
    await backend.open()
    try:
        return {item.key: item.value for item in (await backend.list("/registry/")).items}
    finally:
        await backend.close()


def get_all(server, paths):
    found = {}
    for path in paths:
        status, obj = server.call("GET", path)
        assert status == 200, (path, obj)
        found[path] = obj
    return found


def wait_for_custom(server):
    for _ in range(600):
        if server.call("GET", "/apis/facts.example.com/v1/namespaces/facts/tools")[0] == 200:
            return
    raise AssertionError("the custom resource is not served")


@pytest.mark.parametrize(("writer", "reader"), [(KUBE_APISERVER, PILOTHOUSE), (PILOTHOUSE, KUBE_APISERVER)])
def test_one_reads_what_the_other_wrote(tmp_path, writer, reader):
    with EtcdCluster() as etcd:
        with ApiServer(writer, tmp_path, etcd.urls) as server:
            made = create_all(server)
            assert len(made) > 25
            written = get_all(server, made)
        with ApiServer(reader, tmp_path, etcd.urls) as server:
            wait_for_custom(server)
            assert get_all(server, made) == written
            changed = f"{made[0]}".replace("/namespaces/facts", "/namespaces/facts/configmaps/my-configmap")
            patch = {"data": {"by": "the other"}}
            status, answer = server.call("PATCH", changed, patch, "application/merge-patch+json")
            assert (status, answer["data"]["by"]) == (200, "the other")
        with ApiServer(writer, tmp_path, etcd.urls) as server:
            assert server.call("GET", changed)[1] == answer


def test_both_write_the_same_bytes(tmp_path):
    values, port = [], free_port()
    for binary in (KUBE_APISERVER, PILOTHOUSE):
        with EtcdCluster() as etcd:
            with ApiServer(binary, tmp_path, etcd.urls, port=port) as server:
                create_all(server)
            values.append(asyncio.run(read_values(etcd.urls)))
    theirs, ours = values
    # What changes by itself: leases, and roles that a controller fills where one runs.
    passing = re.compile(
        r"/registry/(events|leases|masterleases|peerserverleases|ipaddresses|apiregistration)"
        r"|/registry/clusterroles/(admin|edit|view)$"
    )
    theirs, ours = ({key: value for key, value in each.items() if not passing.match(key)} for each in (theirs, ours))
    assert set(theirs) == set(ours)
    differing = {
        key: (plain(theirs[key]), plain(ours[key])) for key in theirs if plain(theirs[key]) != plain(ours[key])
    }
    assert not differing, "\n".join(f"{key}\n  {a}\n  {b}" for key, (a, b) in differing.items())
    for key, value in (*theirs.items(), *ours.items()):
        if value.startswith(protobuf.PREFIX):
            assert canonical(value) == value, key
