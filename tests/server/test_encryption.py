"""Secrets at rest: what the data folder holds, key rotation, and reloading."""

from __future__ import annotations

import base64
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import orjson
import pytest

from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.testing.waiting import until

SECRETS = "/api/v1/namespaces/default/secrets"
KEYS = {name: base64.b64encode(name.encode() * 32).decode() for name in "abc"}


def configure(path, *providers, resources=("secrets",)):
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{"resources": list(resources), "providers": list(providers)}],
    }
    path.write_bytes(orjson.dumps(document))
    return path


def keyed(kind, *names):
    return {kind: {"keys": [{"name": name, "secret": KEYS[name]} for name in names]}}


def stored(server, name, place="secrets/default"):
    """The newest stored value of an object."""
    with closing(sqlite3.connect(f"file:{server.data / 'store.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("select * from log").fetchall()
    values = [row for row in rows if f"/registry/{place}/{name}" in row]
    return next(cell for cell in max(values, key=lambda row: row[0]) if isinstance(cell, bytes))


def create(server, name):
    body = {"metadata": {"name": name}, "stringData": {"password": "hunter2-hunter2"}}
    assert server.call("POST", SECRETS, body)[0] == 201


def read(server, name):
    return server.call("GET", f"{SECRETS}/{name}")[2]


@pytest.mark.parametrize("kind", ["aescbc", "aesgcm", "secretbox"])
def test_values_are_encrypted_and_survive_a_restart(host, tmp_path, kind):
    config = configure(tmp_path / "encryption.json", keyed(kind, "a"), {"identity": {}})
    server = host(tmp_path / "data", f"--encryption-provider-config={config}")
    create(server, "s")
    value = stored(server, "s")
    assert value.startswith(f"k8s:enc:{kind}:v1:a:".encode())
    assert b"hunter2" not in value
    server.stop()
    again = host(tmp_path / "data", f"--encryption-provider-config={config}")
    assert read(again, "s")["data"]["password"] == base64.b64encode(b"hunter2-hunter2").decode()
    for path in (tmp_path / "data").glob("store.db*"):
        assert b"hunter2" not in path.read_bytes()
        assert base64.b64encode(b"hunter2-hunter2") not in path.read_bytes()


def test_keys_rotate_while_the_server_runs(host, tmp_path):
    config = configure(tmp_path / "encryption.json", {"identity": {}})
    flags = (f"--encryption-provider-config={config}", "--encryption-provider-config-automatic-reload")
    server = host(tmp_path / "data", *flags)
    create(server, "s")
    assert stored(server, "s").startswith(b"{")
    assert b"[+]kms-providers ok" in server.call("GET", "/healthz?verbose")[2], "there may be some in the next file"
    configure(config, keyed("aesgcm", "b"), {"identity": {}})
    deadline = time.monotonic() + 40
    while not stored(server, "s").startswith(b"k8s:enc:aesgcm:v1:b:"):
        assert time.monotonic() < deadline
        # Writing back what was read is what re-encrypts, as administrators are told to do.
        before = read(server, "s")
        code, _, after = server.call("PUT", f"{SECRETS}/s", before)
        assert code == 200
        time.sleep(0.02)
    assert after["data"] == before["data"]
    configure(config, keyed("aesgcm", "c", "b"))
    deadline = time.monotonic() + 40
    while not stored(server, "s").startswith(b"k8s:enc:aesgcm:v1:c:"):
        assert time.monotonic() < deadline
        server.call("PUT", f"{SECRETS}/s", read(server, "s"))
        time.sleep(0.02)
    assert read(server, "s")["data"] == before["data"]


def test_without_the_key_nothing_can_be_read(host, tmp_path):
    config = configure(tmp_path / "encryption.json", keyed("aesgcm", "a"))
    server = host(tmp_path / "data", f"--encryption-provider-config={config}")
    create(server, "s")
    server.stop()
    configure(config, keyed("aesgcm", "b"), {"identity": {}})
    again = host(tmp_path / "data", f"--encryption-provider-config={config}")
    code, _, answer = again.call("GET", f"{SECRETS}/s")
    assert code == 500
    assert "no matching key was found for the provided AES transformer" in answer["message"]
    assert again.call("GET", "/api/v1/namespaces/default/configmaps")[0] == 200


def test_a_wrong_file_stops_the_start_and_shows_no_secret(launch, tmp_path):
    config = tmp_path / "encryption.json"
    short = {"aescbc": {"keys": [{"name": "a", "secret": base64.b64encode(b"too-short").decode()}]}}
    configure(config, short)
    with pytest.raises(RuntimeError) as failure:
        launch(tmp_path / "data", f"--encryption-provider-config={config}")
    assert "secret is not of the expected length, got 9, expected one of [16 24 32]" in str(failure.value)
    assert base64.b64encode(b"too-short").decode() not in str(failure.value)
    assert "Traceback" not in str(failure.value)


def test_custom_objects_are_encrypted_anew_by_writing_them_unchanged(host, tmp_path):
    both = ("widgets.example.com",)
    config = configure(tmp_path / "encryption.json", {"identity": {}}, resources=both)
    flags = (f"--encryption-provider-config={config}", "--encryption-provider-config-automatic-reload")
    server = host(tmp_path / "data", *flags)
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
    server.establish(definition)
    widgets, place = "/apis/example.com/v1/namespaces/default/widgets", "example.com/widgets/default"
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    assert server.call("POST", widgets, body)[0] == 201
    before = server.call("GET", f"{widgets}/w")[2]
    assert stored(server, "w", place).startswith(b"{")
    assert (
        server.call("PUT", f"{widgets}/w", before)[2]["metadata"]["resourceVersion"]
        == (before["metadata"]["resourceVersion"])
    )
    for path, key in ((f"{widgets}/w", "b"), (f"{widgets}/w/status", "c")):
        configure(config, keyed("aesgcm", key, "b"), {"identity": {}}, resources=both)

        def encrypted_anew(path=path, key=key):
            assert server.call("PUT", path, server.call("GET", f"{widgets}/w")[2])[0] == 200
            return stored(server, "w", place).startswith(f"k8s:enc:aesgcm:v1:{key}:".encode())

        until(encrypted_anew)
    after = server.call("GET", f"{widgets}/w")[2]
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    assert after["spec"] == before["spec"]


@pytest.fixture
def key_service(tmp_path):
    """A key management service over gRPC on a Unix socket; it turns seeds around."""
    grpc = pytest.importorskip("grpc")
    state = SimpleNamespace(key="first", decrypted=0, socket=tmp_path / "kms.sock")

    def status(request, context):
        return messages.encode({1: "v2", 2: "ok", 3: state.key})

    def encrypt(request, context):
        return messages.encode({1: messages.data_of(messages.decode(request), 1)[::-1], 2: state.key})

    def decrypt(request, context):
        state.decrypted += 1
        return messages.encode({1: messages.data_of(messages.decode(request), 1)[::-1]})

    server = grpc.server(ThreadPoolExecutor(2))
    methods = {"Status": status, "Encrypt": encrypt, "Decrypt": decrypt}
    handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("v2.KeyManagementService", handlers)])
    server.add_insecure_port(f"unix:{state.socket}")
    server.start()
    yield state
    server.stop(None).wait()


def test_a_key_management_service_keeps_the_key(host, tmp_path, key_service):
    service = {"kms": {"apiVersion": "v2", "name": "vault", "endpoint": f"unix://{key_service.socket}"}}
    config = configure(tmp_path / "encryption.json", service, {"identity": {}})
    server = host(tmp_path / "data", f"--encryption-provider-config={config}")
    create(server, "s")
    value = stored(server, "s")
    assert value.startswith(b"k8s:enc:kms:v2:vault:")
    assert b"hunter2" not in value
    assert key_service.decrypted == 0, "what was encrypted here is known here"
    code, _, page = server.call("GET", "/healthz?verbose")
    assert (code, b"[+]kms-providers ok" in page) == (200, True)
    server.stop()
    key_service.key = "second"
    again = host(tmp_path / "data", f"--encryption-provider-config={config}")
    assert read(again, "s")["data"]["password"] == base64.b64encode(b"hunter2-hunter2").decode()
    assert key_service.decrypted == 1
    # Written unchanged, it goes under the service's new key.
    assert again.call("PUT", f"{SECRETS}/s", read(again, "s"))[0] == 200
    assert b"second" in stored(again, "s")
    page = again.call("GET", "/metrics")[2].decode()
    sealed = (
        'resource="secrets",transformation_type="to_storage",transformer_prefix="k8s:enc:kms:v2:vault:",status="OK"'
    )
    assert f"apiserver_storage_transformation_operations_total{{{sealed}}} 1" in page
    assert "apiserver_storage_envelope_transformation_cache_misses_total 1" in page
    called = 'provider_name="vault",method_name="/v2.KeyManagementService/Decrypt",grpc_status_code="OK"'
    assert f"apiserver_envelope_encryption_kms_operations_latency_seconds_count{{{called}}} 1" in page
