from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.autoscaling.proposals import (
    Groups,
    NoProposal,
    Reading,
    Tolerances,
    average,
    group,
    propose,
    propose_for_total,
    propose_per_pod,
    requests_of,
    utilization,
)
from pilothouse.machinery.times import parse_time

NOW = parse_time("2026-06-01T01:00:00Z")


def pod(
    name: str, phase: str = "Running", ready: str = "True", started: str = "00:00:00", **more: Any
) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-06-01T00:00:10Z"}
    status = {"phase": phase, "startTime": f"2026-06-01T{started}Z", "conditions": [condition]}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": {"name": name, **more}, "spec": {"containers": containers}, "status": status}


def test_grouping() -> None:
    readings = {name: Reading(1, NOW.seconds) for name in ("ready", "late", "young")}
    pods = [
        pod("ready"),
        pod("gone", deletionTimestamp="x"),
        pod("failed", "Failed"),
        pod("pending", "Pending"),
        pod("silent"),
        pod("late", ready="False"),
        pod("young", ready="False", started="00:58:00"),
    ]
    assert group(pods, readings, "cpu", NOW) == Groups(
        1, frozenset(("pending", "late", "young")), frozenset(("silent",)), frozenset(("gone", "failed"))
    )
    assert group(pods, readings, "memory", NOW).ready == 3


@pytest.mark.parametrize(
    ("current", "values", "unready", "missing", "replicas"),
    [
        (3, [100, 100, 100], 0, 0, 3),
        (3, [105, 105, 105], 0, 0, 3),  # within tolerance
        (3, [200, 200, 200], 0, 0, 6),
        (3, [50, 50, 50], 0, 0, 2),
        (3, [200, 200], 1, 0, 4),  # the unready one counts as idle
        (3, [120, 120], 1, 0, 3),  # and turns the ratio around: nothing happens
        (3, [200, 200], 0, 1, 4),  # so does one without a reading
        (3, [50, 50], 0, 1, 2),  # which counts as busy the other way
        (3, [10, 10], 1, 0, 1),  # unready ones do not matter for less
        (2, [1000, 1000], 0, 0, 20),
    ],
)
def test_proposals(current: int, values: list[int], unready: int, missing: int, replicas: int) -> None:
    readings = {f"p{number}": Reading(value) for number, value in enumerate(values)}
    groups = Groups(
        len(values),
        frozenset(f"u{number}" for number in range(unready)),
        frozenset(f"m{number}" for number in range(missing)),
        frozenset(),
    )
    assert (
        propose(current, readings, groups, lambda each: average(each) / 100, lambda name: 100, Tolerances()) == replicas
    )


def test_nothing_to_go_by() -> None:
    groups = Groups(0, frozenset("a"), frozenset(), frozenset())
    with pytest.raises(NoProposal, match="did not receive metrics for targeted pods"):
        propose(1, {"a": Reading(1)}, groups, lambda each: 1.0, lambda name: 1, Tolerances())
    with pytest.raises(NoProposal, match="no metrics returned matched known pods"):
        utilization({"a": Reading(1)}, {"b": 1})


def test_utilization() -> None:
    assert utilization({"a": Reading(500), "b": Reading(1000), "x": Reading(9)}, {"a": 1000, "b": 1000}) == (75, 750)


@pytest.mark.parametrize(
    ("current", "usage", "replicas"), [(0, 2500, 3), (2, 1050, 2), (2, 3000, 6), (2, 400, 1), (2, 10**15, 2**31 - 1)]
)
def test_amounts_for_all(current: int, usage: int, replicas: int) -> None:
    assert (
        propose_for_total(current, usage, 1000, [pod("a"), pod("b"), pod("c", ready="False")], Tolerances()) == replicas
    )


@pytest.mark.parametrize(("existing", "usage", "replicas"), [(2, 2100, 2), (2, 3000, 3), (0, 3000, 3), (4, 1000, 1)])
def test_amounts_by_pod(existing: int, usage: int, replicas: int) -> None:
    assert propose_per_pod(existing, usage, 1000, Tolerances()) == replicas


def test_tolerances() -> None:
    assert Tolerances(0.5, 0.0).cover(0.6) and not Tolerances(0.5, 0.0).cover(1.01)


def test_requests() -> None:
    assert requests_of([pod("a")], "", "cpu") == {"a": 1000}
    with pytest.raises(NoProposal, match="missing request for memory in container c of Pod a"):
        requests_of([pod("a")], "", "memory")
    with pytest.raises(NoProposal, match="container x not found in Pod a"):
        requests_of([pod("a")], "x", "cpu")
    whole = pod("a")
    whole["spec"]["resources"] = {"requests": {"cpu": "3"}}
    assert requests_of([whole], "", "cpu") == {"a": 3000}
