"""Encrypted on one etcd: what kube-apiserver or Pilothouse has encrypted the other one reads, in whichever way."""

import asyncio
import base64
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.storage.backends.etcd import EtcdBackend, Transport
from pilothouse.testing.etcd_process import EtcdCluster

sys.path.insert(0, str(Path(__file__).parent))
from servers import KUBE_APISERVER, PILOTHOUSE, ApiServer

pytestmark = pytest.mark.skipif(
    not (KUBE_APISERVER and os.environ.get("ETCD")), reason="KUBE_APISERVER and ETCD name no binaries"
)

KEY = base64.b64encode(bytes(range(32))).decode()
RESOURCES = {
    "aescbc": "secrets",
    "aesgcm": "configmaps",
    "secretbox": "serviceaccounts",
    "kms": "tools.facts.example.com",
}
"""One kind of object for each way, so that two starts of each server try them all."""
MANIFESTS = {
    "secrets": ("/api/v1/namespaces/default/secrets", {"stringData": {"password": "hunter2"}}),
    "configmaps": ("/api/v1/namespaces/default/configmaps", {"data": {"k": "plain-to-see"}}),
    "serviceaccounts": ("/api/v1/namespaces/default/serviceaccounts", {}),
    "tools.facts.example.com": (
        "/apis/facts.example.com/v1/namespaces/default/tools",
        {"apiVersion": "facts.example.com/v1", "kind": "Tool", "spec": {"a": "<&>", "b": 1.5}},
    ),
}
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
            }
        ],
    },
}


def provider(kind, socket):
    if kind == "kms":
        return {"kms": {"apiVersion": "v2", "name": "vault", "endpoint": f"unix://{socket}", "timeout": "10s"}}
    return {kind: {"keys": [{"name": "k1", "secret": KEY}]}}


@pytest.fixture
def configuration(tmp_path):
    """The file, with a key management service that it names."""
    grpc = pytest.importorskip("grpc")

    def status(request, context):
        return messages.encode({1: "v2", 2: "ok", 3: "first"})

    def turned(data):
        return bytes(byte ^ 0x5A for byte in data)

    def encrypt(request, context):
        plain = messages.data_of(messages.decode(request), 1)
        return messages.encode({1: turned(plain), 2: "first", 3: {"interop.example.com": b"note"}})

    def decrypt(request, context):
        return messages.encode({1: turned(messages.data_of(messages.decode(request), 1))})

    service = grpc.server(ThreadPoolExecutor(4))
    methods = {"Status": status, "Encrypt": encrypt, "Decrypt": decrypt}
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    service.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v2.KeyManagementService", handlers)])
    socket = tmp_path / "kms.sock"
    service.add_insecure_port(f"unix:{socket}")
    service.start()
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            {"resources": [resource], "providers": [provider(kind, socket), {"identity": {}}]}
            for kind, resource in RESOURCES.items()
        ],
    }
    path = tmp_path / "encryption.json"
    path.write_text(json.dumps(document))
    yield path
    service.stop(None).wait()


def create_all(server, name):
    """(path, object) of one object of each resource."""
    status, answer = server.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    assert status in (201, 409), answer
    made = {}
    for collection, manifest in MANIFESTS.values():
        for _ in range(600):
            status, answer = server.call("POST", collection, {**manifest, "metadata": {"name": name}})
            if status != 404:  # the definition is yet to be served
                break
        assert status == 201, answer
        made[f"{collection}/{name}"] = answer
    return made


def read_all(server, paths):
    found = {}
    for path in paths:
        for _ in range(600):
            status, found[path] = server.call("GET", path)
            if status == 200:
                break
        assert status == 200, found[path]
    return found


async def stored(urls, key):
    backend = EtcdBackend(Transport(urls))
    await backend.open()
    try:
        item = await backend.get(key)
        assert item is not None, key
        return item.value
    finally:
        await backend.close()


@pytest.mark.parametrize(("writer", "reader"), [(KUBE_APISERVER, PILOTHOUSE), (PILOTHOUSE, KUBE_APISERVER)])
def test_one_decrypts_what_the_other_encrypted(tmp_path, configuration, writer, reader):
    flag = f"--encryption-provider-config={configuration}"
    keys = {
        "aescbc": "/registry/secrets/default/x",
        "aesgcm": "/registry/configmaps/default/x",
        "secretbox": "/registry/serviceaccounts/default/x",
        "kms": "/registry/facts.example.com/tools/default/x",
    }
    with EtcdCluster() as etcd:
        with ApiServer(writer, tmp_path, etcd.urls, flag) as server:
            made = create_all(server, "x")
        for kind, key in keys.items():
            version = "v2:vault" if kind == "kms" else "v1:k1"
            value = asyncio.run(stored(etcd.urls, key))
            assert value.startswith(f"k8s:enc:{kind}:{version}:".encode()), value[:40]
            assert b"hunter2" not in value and b"plain-to-see" not in value
        with ApiServer(reader, tmp_path, etcd.urls, flag) as server:
            assert read_all(server, made) == made
            patch = {"metadata": {"annotations": {"by": "the other"}}}
            for path in made:
                status, made[path] = server.call("PATCH", path, patch, "application/merge-patch+json")
                assert status == 200, made[path]
        with ApiServer(writer, tmp_path, etcd.urls, flag) as server:
            assert read_all(server, made) == made
