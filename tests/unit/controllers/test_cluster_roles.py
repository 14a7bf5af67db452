"""Cluster roles that are made of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.controllers.cluster_roles import aggregate
from pilothouse.testing.in_process import InProcessServer

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def role(name: str, *rules: dict[str, Any], selects: str = "", label: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {
        "metadata": {"name": name, "labels": {label: "true"} if label else {}},
        "rules": list(rules),
    }
    if selects:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {selects: "true"}}]}
    return made


READ, WRITE = {"verbs": ["get"], "resources": ["pods"]}, {"verbs": ["update"], "resources": ["pods"]}


def test_rules_come_by_name_and_once() -> None:
    whole = role("whole", selects="x", label="x")
    parts = [
        role("b", WRITE, READ, label="x"),
        role("a", {**READ, "apiGroups": []}, label="x"),
        role("c", WRITE),
        whole,
    ]
    assert aggregate(whole, parts) == [READ, WRITE]


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as running:
        yield running


@pytest.fixture
async def controlled() -> AsyncIterator[InProcessServer]:
    async with InProcessServer("--controllers=clusterrole-aggregation-controller") as running:
        yield running


async def rules(server: InProcessServer, name: str, expected: list[str]) -> None:
    """Wait until a role has rules for these verbs."""
    while True:
        answer = await server.request("GET", f"{ROLES}/{name}")
        if [rule["verbs"][0] for rule in answer.json.get("rules") or ()] == expected:
            return
        await asyncio.sleep(0.01)


async def test_a_server_without_controllers_leaves_roles_of_others_alone(server: InProcessServer) -> None:
    """A controller manager may be on its way; until then kube-apiserver keeps what was written."""
    assert (await server.request("POST", ROLES, role("whole", {**WRITE, "apiGroups": [""]}, selects="x"))).status == 201
    part = role("part", {**READ, "apiGroups": [""]}, label="x")
    part["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] = "true"
    assert (await server.request("POST", ROLES, part)).status == 201
    while True:  # by then whoever aggregates has seen the part
        view = (await server.request("GET", f"{ROLES}/view")).json
        if any(rule["resources"] == ["pods"] and rule["verbs"] == ["get"] for rule in view.get("rules") or ()):
            break
        await asyncio.sleep(0.01)
    await rules(server, "whole", ["update"])


async def test_roles_follow_their_parts(controlled: InProcessServer) -> None:
    server = controlled
    for obj in (role("whole", selects="x"), role("part", {**READ, "apiGroups": [""]}, label="x")):
        assert (await server.request("POST", ROLES, obj)).status == 201
    await rules(server, "whole", ["get"])
    other = role("other", {**WRITE, "apiGroups": [""]}, label="x")
    assert (await server.request("POST", ROLES, other)).status == 201
    await rules(server, "whole", ["update", "get"])
    assert (await server.request("DELETE", f"{ROLES}/part")).status == 200
    await rules(server, "whole", ["update"])


async def test_whoever_may_bind_a_role_does_not_get_more_than_they_have(server: InProcessServer) -> None:
    """Binding the aggregated roles of a fresh cluster is checked by what they give."""
    while not (await server.request("GET", f"{ROLES}/admin")).json.get("rules"):
        await asyncio.sleep(0.01)
    binder = role("binder", {"verbs": ["create"], "resources": ["rolebindings"], "apiGroups": ["*"]})
    assert (await server.request("POST", ROLES, binder)).status == 201
    bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"

    def binding(name: str, role_name: str) -> dict[str, Any]:
        subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
        reference = {"kind": "ClusterRole", "name": role_name, "apiGroup": "rbac.authorization.k8s.io"}
        return {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}

    assert (await server.request("POST", bindings, binding("may-bind", "binder"))).status == 201
    refused = await server.request("POST", bindings, binding("more", "admin"), {"Impersonate-User": "jane"})
    assert refused.status == 403
    assert "attempting to grant RBAC permissions not currently held" in refused.json["message"]


def test_rules_are_not_compared_with_each_other() -> None:
    """Of a thousand rules that would be half a million comparisons."""
    compared = 0

    class Verbs(list[str]):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

        __hash__ = None  # type: ignore[assignment]

    parts = [role(f"part-{number}", {**READ, "verbs": Verbs([f"v{number}"])}, label="x") for number in range(1_000)]
    assert len(aggregate(role("whole", selects="x"), [*parts, *parts])) == 1_000
    assert compared == 0
