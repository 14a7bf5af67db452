"""Both servers store the same bytes for the same writes: any kind, made at random, created and then written again.

A write that changes nothing counts too: it is written down where what is stored is not what a write would store.
"""

import asyncio
import http.client
import json
import os
import random
import ssl
import sys
from pathlib import Path

import pytest

from pilothouse.apis import types
from pilothouse.apis.resources import table
from pilothouse.machinery import protobuf
from pilothouse.machinery.errors import StatusError
from pilothouse.storage.backends.etcd import EtcdBackend, Transport
from pilothouse.testing.etcd_process import EtcdCluster
from pilothouse.testing.made_objects import ANCHORS, Maker, accept

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer
from stored_bytes import canonical, plain

pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD")), reason="KUBE_APISERVER and ETCD name no binaries"
)

SEEDS = int(os.environ.get("INTEROP_SEEDS", "4"))
CHANCES = (0.0, 0.1, 0.25, 0.5)
FLAGS = (
    "--runtime-config=api/all=true",
    "--feature-gates=AllAlpha=true,AllBeta=true",
    "--disable-admission-plugins=ServiceAccount,NamespaceLifecycle,Priority",
)
BY_CONTROLLERS = ("apiservices", "customresourcedefinitions", "flowschemas", "ipaddresses")
"""Kinds that controllers in the server change or remove as soon as they are there: only their creation is compared."""
NEVER_MADE = "podcertificaterequests"
"""The one kind no object of which is accepted: it carries a signature over the pod's uid."""


class Side:
    """A server, and what it stores."""

    def __init__(self, server, backend, loop):
        self._server, self._backend, self._loop = server, backend, loop
        self._connection = None

    def call(self, method, path, body=None, content_type="application/json"):
        """(status, decoded body), on one connection."""
        if self._connection is None:
            context = ssl._create_unverified_context()
            self._connection = http.client.HTTPSConnection("127.0.0.1", self._server.port, timeout=60, context=context)
        headers = {"Authorization": "Bearer admintoken", "Content-Type": content_type}
        data = None if body is None else json.dumps(body, separators=(",", ":"))
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.will_close:
            self.hang_up()
        try:
            return answer.status, json.loads(data)
        except ValueError:
            return answer.status, {"message": data.decode(errors="replace")}

    def hang_up(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def stored(self, key, obj):
        """What was stored by the write that was answered with an object."""
        found = self._loop.run_until_complete(self._backend.get(key, int(obj["metadata"]["resourceVersion"])))
        assert found is not None, key
        if found.value.startswith(protobuf.PREFIX):
            assert canonical(found.value) == found.value, key
        return plain(found.value)


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder, loop = tmp_path_factory.mktemp("servers"), asyncio.new_event_loop()
    with (
        EtcdCluster() as one,
        EtcdCluster() as other,
        ApiServer(KUBE_APISERVER, folder, one.urls, *FLAGS) as theirs,
        ApiServer(PILOTHOUSE, folder, other.urls, *FLAGS) as ours,
    ):
        backends = [EtcdBackend(Transport(etcd.urls)) for etcd in (one, other)]
        for backend in backends:
            loop.run_until_complete(backend.open())
        both = [Side(server, backend, loop) for server, backend in zip((theirs, ours), backends, strict=True)]
        for side in both:
            assert side.call("POST", "/api/v1/namespaces", {"metadata": {"name": "ns"}})[0] == 201
        yield both
        for side in both:
            side.hang_up()
        for backend in backends:
            loop.run_until_complete(backend.close())
    loop.close()


class Made:
    """An object of a kind that both servers accept, made from a seed."""

    def __init__(self, sides, resource, seed):
        self._theirs, self._ours = sides
        version = resource.group_version
        root = f"/apis/{version}" if resource.group else f"/api/{version}"
        inside = "/namespaces/ns" if resource.namespaced else ""
        self._collection = f"{root}{inside}/{resource.name}"
        self._keys = f"/registry/{resource.key}/" + ("ns/" if resource.namespaced else "")
        self._struct, self._seed = types.struct(resource.type_name), seed
        maker = Maker(random.Random(seed), CHANCES[seed % len(CHANCES)])
        body = maker.struct(self._struct)
        body |= {"kind": resource.kind, "apiVersion": str(version)}
        body["metadata"] = {**body.get("metadata", {}), "name": f"a{seed}"}
        body["metadata"].pop("finalizers", None)
        anchors = ANCHORS.get(resource.name, {})
        self.accepted = accept(self._create, self._struct, body, maker, anchors) is not None
        if self.accepted:
            self._path = f"{self._collection}/{self._sent['metadata']['name']}"
            self._key = self._keys + self._sent["metadata"]["name"]

    def _create(self, body):
        self._sent = body
        status, self._answer = self._ours.call("POST", f"{self._collection}?fieldManager=t", body)
        if status == 201:
            return self._answer
        causes = self._answer.get("details", {}).get("causes")
        code = 422 if status == 422 and causes else 400
        raise StatusError(code, "Invalid", self._answer["message"], details={"causes": causes})

    def compare_creation(self):
        """Have the other server create it too, which then stores the same. Refusals are tested elsewhere."""
        status, answer = self._theirs.call("POST", f"{self._collection}?fieldManager=t", self._sent)
        if status in (409, 422):  # the last one of this name is about to go, or it is refused
            return
        assert status == 201, answer
        if "uid" in answer["metadata"]:  # else nothing is stored
            self._compare(answer, self._answer)

    def compare_writes(self):
        """Write it again in several ways; what is stored then is the same, and whether anything was."""
        self._write("PUT", lambda obj: obj)
        self._write("PATCH", lambda obj: {})
        self._write("PATCH", lambda obj: {"metadata": {"annotations": {"a": "b"}, "labels": None}})
        if "status" in self._struct.fields:
            maker = Maker(random.Random(self._seed), CHANCES[self._seed % len(CHANCES)])
            status = maker.value(self._struct.fields["status"].type)
            self._write("PUT", lambda obj: {**obj, "status": status}, "/status")
            self._write("PUT", lambda obj: {**obj, "status": {}}, "/status")

    def remove(self):
        for side in (self._theirs, self._ours):
            side.call("DELETE", self._path, {"gracePeriodSeconds": 0})

    def _write(self, method, change, suffix=""):
        content_type = "application/json" if method == "PUT" else "application/merge-patch+json"
        answers, versions = [], []
        for side in (self._theirs, self._ours):
            status, before = side.call("GET", self._path)
            if status != 200:  # some are not kept at all
                return
            path = f"{self._path}{suffix}?fieldManager=t"
            answers.append(side.call(method, path, change(before), content_type))
            versions.append(before["metadata"]["resourceVersion"])
        if all(status == 200 for status, _ in answers):
            written = [
                answer["metadata"]["resourceVersion"] != version
                for (_, answer), version in zip(answers, versions, strict=True)
            ]
            assert written[0] == written[1], (self._path, method, suffix)
            self._compare(answers[0][1], answers[1][1])

    def _compare(self, theirs, ours):
        assert self._ours.stored(self._key, ours) == self._theirs.stored(self._key, theirs)


RESOURCES = [
    resource
    for version in table().values()
    for resource in version.resources
    if resource.is_stored and resource.hub == resource.group_version
]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: f"{resource.name}.{resource.group}".rstrip("."))
def test_every_kind_is_stored_as_the_same_bytes(sides, resource):
    accepted = 0
    for seed in range(SEEDS):
        made = Made(sides, resource, seed)
        if made.accepted:
            accepted += 1
            made.compare_creation()
            if resource.name not in BY_CONTROLLERS:
                made.compare_writes()
            made.remove()
    assert accepted or resource.name == NEVER_MADE
