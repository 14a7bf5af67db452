"""What a daemon set does next."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.daemon_sets.backoff import FailedPodBackoff
from pilothouse.controllers.daemon_sets.placement import Placement, by_node, node_of, tolerations_of
from pilothouse.controllers.daemon_sets.rollout import View, plan_nodes, plan_update
from pilothouse.machinery.times import Instant
from pilothouse.testing.fake_clock import FakeClock


def daemon_set(**rolling: Any) -> dict[str, Any]:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = {"template": {"spec": {}}, "updateStrategy": strategy}
    return {"metadata": {"name": "d", "uid": "u"}, "spec": spec, "status": {"observedGeneration": 1}}


def node(name: str, *taints: str) -> dict[str, Any]:
    made = [{"key": "k", "effect": effect} for effect in taints]
    return {"metadata": {"name": name, "labels": {}}, "spec": {"taints": made}}


def pod(node: str, state: str, number: int = 0) -> dict[str, Any]:
    """A state as in the tests of stateful sets; ``f`` has failed."""
    metadata: dict[str, Any] = {"name": f"{node}-{state}-{number}", "creationTimestamp": f"2026-01-0{number + 1}"}
    metadata["labels"] = {"controller-revision-hash": "new" if state in "ny" else "old"}
    if state == "t":
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True" if state in "on" else "False"}
    status = {"phase": "Failed" if state == "f" else "Running", "conditions": [ready]}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def view(made: dict[str, Any], *states: str, nodes: list[dict[str, Any]] | None = None) -> View:
    """Each text stands for the pods of a node."""
    names = [f"n{number}" for number in range(len(states))]
    pods = [pod(name, state, at) for name, each in zip(names, states, strict=True) for at, state in enumerate(each)]
    there = nodes if nodes is not None else [node(name) for name in names]
    return View(made, "new", there, by_node(pods), Placement(made), Instant(2_000_000_000))


@pytest.mark.parametrize(
    ("rolling", "states", "deleted", "created"),
    [
        ({"maxUnavailable": 1}, ["o", "o"], ["n0-o-0"], []),
        ({"maxUnavailable": 1}, ["n", "o"], ["n1-o-0"], []),
        ({"maxUnavailable": 1}, ["y", "o"], [], []),
        ({"maxUnavailable": 1}, ["", "o"], [], []),
        ({"maxUnavailable": 1}, ["t", "o"], [], []),
        ({"maxUnavailable": 1}, ["x", "o"], ["n0-x-0"], []),
        ({"maxUnavailable": "100%"}, ["o", "o", "o"], ["n0-o-0", "n1-o-0", "n2-o-0"], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, ["o", "o"], [], ["n0"]),
        ({"maxUnavailable": 0, "maxSurge": 1}, ["oy", "o"], [], []),
        ({"maxUnavailable": 0, "maxSurge": 1}, ["on", "o"], ["n0-o-0"], ["n1"]),
        ({"maxUnavailable": 0, "maxSurge": 1}, ["x", "o"], [], ["n0", "n1"]),
    ],
)
def test_update(rolling: dict[str, Any], states: list[str], deleted: list[str], created: list[str]) -> None:
    plan = plan_update(view(daemon_set(**rolling), *states))
    assert [each["metadata"]["name"] for each in plan.delete] == deleted
    assert plan.create == created


@pytest.mark.parametrize(
    ("rolling", "states", "deleted", "created"),
    [
        ({}, ["", "o"], [], ["n0"]),
        ({}, ["t"], [], []),
        ({}, ["f"], ["n0-f-0"], []),
        ({}, ["oo"], ["n0-o-1"], []),
        ({"maxSurge": 1}, ["on"], ["n0-o-0"], []),
        ({"maxSurge": 1}, ["oy"], [], []),
        ({"maxSurge": 1}, ["xy"], ["n0-x-0"], []),
        ({"maxSurge": 1}, ["t"], [], ["n0"]),
        ({"maxSurge": 1}, ["ooyy"], ["n0-y-3", "n0-o-1"], []),
    ],
)
def test_nodes(rolling: dict[str, Any], states: list[str], deleted: list[str], created: list[str]) -> None:
    plan = plan_nodes(view(daemon_set(**rolling), *states), lambda node: False)
    assert [each["metadata"]["name"] for each in plan.delete] == deleted
    assert plan.create == created


def test_nodes_that_are_not_meant_lose_their_pods() -> None:
    nodes = [node("n0", "NoExecute"), node("n1", "NoSchedule")]
    plan = plan_nodes(view(daemon_set(), "o", "o", nodes=nodes), lambda node: False)
    assert [each["metadata"]["name"] for each in plan.delete] == ["n0-o-0"]


def test_failed_pods_stay_longer_each_time() -> None:
    clock = FakeClock()
    backoff = FailedPodBackoff(clock)
    made = daemon_set()
    assert backoff.wait(made, "n") == 0
    assert backoff.wait(made, "n") == 1 and backoff.wait(made, "m") == 0
    clock.advance(1)
    assert backoff.wait(made, "n") == 0 and backoff.wait(made, "n") == 2
    made["status"]["observedGeneration"] = 2
    assert backoff.wait(made, "n") == 0


def test_the_node_a_pod_is_for() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert node_of({"spec": {"affinity": affinity}}) == "n7"
    assert node_of({"spec": {"nodeName": "n1", "affinity": affinity}}) == "n1"
    assert node_of({"spec": {}}) == ""


def test_tolerations() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = tolerations_of({"tolerations": [own], "hostNetwork": True})
    assert len(found) == 7 and all("tolerationSeconds" not in each for each in found)
