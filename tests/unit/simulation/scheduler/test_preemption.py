from __future__ import annotations

from typing import Any

import pytest

from pilothouse.simulation.scheduler.placement import NoFit, Placement
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.preemption import Candidate, NoCandidate, find_candidate

from .conftest import Cluster


def preempt(cluster: Cluster, pod: PodInfo) -> Candidate:
    placement = Placement()
    with pytest.raises(NoFit) as refused:
        placement.find(pod, cluster.view)
    return find_candidate(pod, refused.value, cluster.view, placement.judges)


def names(candidate: Candidate) -> list[str]:
    return [pod.name for pod in candidate.victims]


def test_only_as_many_go_as_must(cluster: Cluster) -> None:
    cluster.node("a", cpu="3")
    for name, priority in (("low", 1), ("lower", 0), ("lowest", -1)):
        cluster.pod(name, "a", cpu="1", priority=priority)
    found = preempt(cluster, cluster.pod("p", cpu="2", priority=10))
    assert (found.node.name, names(found)) == ("a", ["lower", "lowest"])
    assert {pod.name for pod in found.node.pods.values()} == {"low", "lower", "lowest"}, "trying leaves no trace"
    assert found.node.requested["cpu"] == 3000


def test_the_cheapest_node_is_chosen(cluster: Cluster) -> None:
    cluster.node("a", cpu="1")
    cluster.node("b", cpu="1")
    cluster.pod("dear", "a", cpu="1", priority=5)
    cluster.pod("cheap", "b", cpu="1", priority=1)
    assert names(preempt(cluster, cluster.pod("p", cpu="1", priority=10))) == ["cheap"]


def test_the_younger_of_equals_goes(cluster: Cluster) -> None:
    for node, start in (("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")):
        cluster.node(node, cpu="1")
        cluster.pod(f"on-{node}", node, cpu="1", status={"startTime": start})
    assert names(preempt(cluster, cluster.pod("p", cpu="1", priority=10))) == ["on-b"]


def test_budgets_are_kept_where_possible(cluster: Cluster) -> None:
    cluster.node("a", cpu="2")
    cluster.pod("guarded", "a", cpu="1", labels={"app": "x"})
    cluster.pod("free", "a", cpu="1", priority=1)
    budget: dict[str, Any] = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": 0},
    }
    cluster.put("budget", budget)
    assert names(preempt(cluster, cluster.pod("p", cpu="1", priority=10))) == ["free"]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"priority": 0}, "0/1 nodes are available: 1 No preemption victims found for incoming pod."),
        ({"priority": 10, "preemptionPolicy": "Never"}, "not eligible due to preemptionPolicy=Never."),
        (
            {"priority": 10, "nodeSelector": {"x": "y"}},
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        ),
    ],
)
def test_why_it_does_not_help(cluster: Cluster, spec: dict[str, Any], text: str) -> None:
    cluster.node("a", cpu="1")
    cluster.pod("there", "a", cpu="1")
    with pytest.raises(NoCandidate) as refused:
        preempt(cluster, cluster.pod("p", cpu="1", **spec))
    assert str(refused.value) == text
