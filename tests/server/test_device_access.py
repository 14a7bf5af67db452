"""Devices as an administrator: only where the namespace allows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"
REFUSED = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing"


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "trusted", "labels": labels}})
        yield server


def claim(*, admin: bool) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": "c", **({"adminAccess": True} if admin else {})}}
    return {"metadata": {"generateName": "c-"}, "spec": {"devices": {"requests": [request]}}}


@pytest.mark.parametrize(
    ("namespace", "admin", "code"), [("default", False, 201), ("default", True, 422), ("trusted", True, 201)]
)
def test_claims_and_templates(server: InProcessServer, namespace: str, admin: bool, code: int) -> None:
    path, body = CLAIMS.format(namespace), claim(admin=admin)
    answer = server.call("POST", path, body)
    assert answer.status == code
    template = {"metadata": body["metadata"], "spec": {"spec": body["spec"]}}
    templated = server.call("POST", path.replace("claims", "claimtemplates"), template)
    assert templated.status == code
    for each in (answer, templated):
        if code == 422:
            (cause,) = each.json["details"]["causes"]
            assert cause["field"] == "spec.devices.requests[0].adminAccess"
            assert REFUSED in cause["message"]


@pytest.mark.parametrize(("namespace", "code"), [("default", 422), ("trusted", 200)])
def test_allocations(server: InProcessServer, namespace: str, code: int) -> None:
    made = server.call("POST", CLAIMS.format(namespace), claim(admin=False)).json
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x", "adminAccess": True}
    made["status"] = {"allocation": {"devices": {"results": [result]}}}
    path = f"{CLAIMS.format(namespace)}/{made['metadata']['name']}/status"
    answer = server.call("PUT", path, made)
    assert answer.status == code, answer.json
    if code == 422:
        assert answer.json["details"]["causes"][0]["field"] == "status.allocation.devices.results[0].adminAccess"
