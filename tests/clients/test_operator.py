"""A kopf operator with a CRD of its own reconciles, sets status and finalizers; the dynamic client agrees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kubernetes import config, dynamic, watch

HERE = Path(__file__).parent
BOATS = "/apis/example.com/v1/namespaces/{}/boats"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "boats.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "shortNames": ["bt"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "minimum": 0, "default": 1}},
                                "x-kubernetes-validations": [{"rule": "self.size <= 10", "message": "too large"}],
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def boats(server):
    """The CRD, served."""
    server.establish(CRD)
    return server.namespace("boats")


def boat(name, size):
    return {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"size": size}}


def events_until(server, namespace, version, done):
    """The objects of a watch, up to the first that ``done`` is content with."""
    api = dynamic.DynamicClient(config.new_client_from_config(str(server.kubeconfig)))
    resource = api.resources.get(api_version="example.com/v1", kind="Boat")
    for event in resource.watch(namespace=namespace, resource_version=version, timeout=120, watcher=watch.Watch()):
        if done(event["type"], event["raw_object"]):
            return event["raw_object"]
    raise AssertionError("the watch ended first")


def test_an_operator_reconciles(server, boats):
    path = BOATS.format(boats)
    operator = subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", "--standalone", "-n", boats, str(HERE / "operator" / "handlers.py")],
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        _, _, made = server.call("POST", path, boat("black-pearl", 2))
        version = made["metadata"]["resourceVersion"]
        reconciled = events_until(server, boats, version, lambda kind, obj: "crew" in (obj.get("status") or {}))
        assert reconciled["status"]["crew"] == ["sailor-0", "sailor-1"]
        assert reconciled["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        merge = {"Content-Type": "application/merge-patch+json"}
        _, _, changed = server.call("PATCH", f"{path}/black-pearl", {"spec": {"size": 1}}, merge)
        version = changed["metadata"]["resourceVersion"]
        events_until(server, boats, version, lambda kind, obj: (obj.get("status") or {}).get("crew") == ["sailor-0"])
        server.call("DELETE", f"{path}/black-pearl")
        assert operator.stdout.readline() == "farewell black-pearl\n"
        events_until(server, boats, version, lambda kind, obj: kind == "DELETED")
        assert server.call("GET", f"{path}/black-pearl")[0] == 404
    finally:
        operator.terminate()
        operator.wait(120)
        operator.stdout.close()


def test_the_dynamic_client(server, boats):
    api = dynamic.DynamicClient(config.new_client_from_config(str(server.kubeconfig)))
    resource = api.resources.get(api_version="example.com/v1", kind="Boat")
    made = resource.create(body={**boat("plain", 0), "spec": {}}, namespace=boats)
    assert made.spec.size == 1
    with pytest.raises(dynamic.exceptions.UnprocessibleEntityError) as refusal:
        resource.create(body=boat("huge", 11), namespace=boats)
    assert "too large" in refusal.value.body
    assert [item.metadata.name for item in resource.get(namespace=boats).items] == ["plain"]
    resource.delete(name="plain", namespace=boats)
