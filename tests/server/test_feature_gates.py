"""What ``--feature-gates`` changes on a whole server: rules, fields, resources, watches and pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

SWITCHED = {
    "TaintTolerationComparisonOperators": True,
    "StatefulSetRecreateStrategy": True,
    "EvictionRequestAPI": True,
    "HPAScaleToZero": False,
    "StrictIPCIDRValidation": False,
    "WatchList": False,
    "ComponentFlagz": False,
}
SETS = "/apis/apps/v1/namespaces/default/statefulsets"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def switched() -> Iterator[InProcessServer]:
    text = ",".join(f"{name}={str(on).lower()}" for name, on in SWITCHED.items())
    with InProcessServer(f"--feature-gates={text}", "--disable-admission-plugins=ServiceAccount") as server:
        yield server


@pytest.fixture(scope="module")
def usual() -> Iterator[InProcessServer]:
    with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        yield server


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def stateful_set() -> dict[str, Any]:
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template, "updateStrategy": {"type": "Recreate"}}
    return {"metadata": {"generateName": "s-"}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "body", "codes"),
    [
        (PODS, pod(tolerations=[{"key": "a", "operator": "Gt", "value": "1"}]), (422, 201)),
        (PODS, pod(hostAliases=[{"ip": "010.0.0.1"}]), (422, 201)),
        (PODS, pod(evictionResponders=[{"name": "a.k8s.io/b", "priority": 5000}]), (201, 422)),
        (SETS, stateful_set(), (422, 201)),
    ],
)
def test_rules(usual: InProcessServer, switched: InProcessServer, path: str, body: Any, codes: tuple[int, int]) -> None:
    assert tuple(server.call("POST", path, body).status for server in (usual, switched)) == codes


def test_streaming_lists_can_be_switched_off(usual: InProcessServer, switched: InProcessServer) -> None:
    path = f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    assert usual.call("GET", path).status == 200
    refused = switched.call("GET", path)
    assert refused.status == 422
    assert "unless the WatchList feature gate is enabled" in refused.json["message"]


def test_pages_can_be_switched_off(usual: InProcessServer, switched: InProcessServer) -> None:
    assert usual.call("GET", "/flagz").status != 404
    assert switched.call("GET", "/flagz").status == 404
    assert switched.call("GET", "/statusz").status != 404


def test_an_emulated_version() -> None:
    """It shows everywhere, and what came later is not there."""
    flags = ("--emulated-version=1.35", "--feature-gates=ComponentStatusz=true")
    with InProcessServer(*flags) as server:
        version = server.call("GET", "/version").json
        assert (version["minor"], version["emulationMinor"], version["minCompatibilityMinor"]) == ("37", "35", "34")
        assert b"Binary version: 1.37.0\nEmulation version: 1.35" in server.call("GET", "/statusz").body
        page = server.call("GET", "/metrics").body
        assert b'version_info{binary="1.37.0",component="kube",emulation="1.35",min_compat="1.34"} 1' in page
        assert b'name="AtomicFIFO"' not in page
        group = "/apis/admissionregistration.k8s.io/v1"
        assert server.call("GET", f"{group}/mutatingadmissionpolicies").status == 404
        assert server.call("GET", f"{group}/validatingadmissionpolicies").status == 200
