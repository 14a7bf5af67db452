"""Which pods of a stateful set go next, and who owns its claims."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.stateful_sets.identity import parent_and_ordinal
from pilothouse.controllers.stateful_sets.retention import has_other_controller, is_owned_rightly, wanted_owners
from pilothouse.controllers.stateful_sets.rollout import pods_to_update
from pilothouse.machinery.times import Instant


def pods(states: str) -> list[dict[str, Any]]:
    """``o`` old, ``n`` new, ``x`` old and broken, ``y`` new and broken, ``t`` old and going."""
    made = []
    for ordinal, state in enumerate(states):
        ready = "True" if state in "ont" else "False"
        metadata: dict[str, Any] = {"name": f"web-{ordinal}", "uid": str(ordinal)}
        metadata["labels"] = {"controller-revision-hash": "new" if state in "ny" else "old"}
        if state == "t":
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        made.append({"metadata": metadata, "spec": {}, "status": status})
    return made


def stateful_set(count: int, strategy: str = "RollingUpdate", **rolling: Any) -> dict[str, Any]:
    parallel = rolling.pop("parallel", False)
    spec = {"replicas": count, "updateStrategy": {"type": strategy, "rollingUpdate": rolling}}
    spec["podManagementPolicy"] = "Parallel" if parallel else "OrderedReady"
    return {"metadata": {"name": "web", "uid": "set"}, "spec": spec}


@pytest.mark.parametrize(
    ("states", "settings", "chosen"),
    [
        ("ooo", {}, [2]),
        ("oon", {}, [1]),
        ("nnn", {}, []),
        ("ooy", {}, []),
        ("oot", {}, []),
        ("xoo", {}, []),
        ("ooo", {"partition": 2}, [2]),
        ("oon", {"partition": 2}, []),
        ("ooo", {"partition": 7}, []),
        ("oooo", {"maxUnavailable": 2}, [3, 2]),
        ("ooot", {"maxUnavailable": 2}, [2]),
        ("oooo", {"maxUnavailable": "50%"}, [3, 2]),
        ("oooo", {"maxUnavailable": "10%"}, [3]),
        ("xxoo", {"maxUnavailable": 1, "parallel": True}, [1, 0]),
        ("xooo", {"maxUnavailable": 3, "parallel": True}, [0, 3, 2]),
        ("xoyo", {"maxUnavailable": 1, "parallel": True, "partition": 1}, []),
        ("ooo", {"strategy": "OnDelete"}, []),
    ],
)
def test_pods_to_update(states: str, settings: dict[str, Any], chosen: list[int]) -> None:
    made = stateful_set(len(states), **settings)
    found = pods_to_update(made, pods(states), 0, "new", Instant(2_000_000_000))
    assert [pod["metadata"]["name"] for pod in found] == [f"web-{ordinal}" for ordinal in chosen]


def test_pods_that_nobody_has_made_yet_count_as_unavailable() -> None:
    made = stateful_set(6, maxUnavailable=3)
    assert len(pods_to_update(made, pods("oooo"), 2, "new", Instant(2_000_000_000))) == 1
    assert pods_to_update(made, pods("oooo"), 3, "new", Instant(2_000_000_000)) == []


def test_a_partition_counts_ordinals() -> None:
    made = stateful_set(4, partition=2)
    found = pods_to_update(made, pods("oooo")[1:], 0, "new", Instant(2_000_000_000))
    assert [pod["metadata"]["name"] for pod in found] == ["web-3"]


@pytest.mark.parametrize(
    ("name", "parent", "ordinal"),
    [("web-0", "web", 0), ("a-b-12", "a-b", 12), ("web", "", -1), ("web-x", "", -1), ("web-99999999999", "web", -1)],
)
def test_names(name: str, parent: str, ordinal: int) -> None:
    assert parent_and_ordinal(name) == (parent, ordinal)


@pytest.mark.parametrize(
    ("deleted", "scaled", "ordinal", "kinds"),
    [
        ("Retain", "Retain", 0, []),
        ("Delete", "Retain", 0, ["StatefulSet"]),
        ("Delete", "Retain", 5, ["StatefulSet"]),
        ("Retain", "Delete", 0, []),
        ("Retain", "Delete", 5, ["Pod"]),
        ("Delete", "Delete", 0, ["StatefulSet"]),
        ("Delete", "Delete", 5, ["Pod"]),
    ],
)
def test_owners_of_claims(deleted: str, scaled: str, ordinal: int, kinds: list[str]) -> None:
    made = stateful_set(3)
    made["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": deleted, "whenScaled": scaled}
    pod = {"metadata": {"name": f"web-{ordinal}", "uid": "pod"}}
    claim: dict[str, Any] = {"metadata": {"name": f"data-web-{ordinal}"}}
    wanted = wanted_owners(claim, made, pod)
    assert [each["kind"] for each in wanted] == kinds
    assert is_owned_rightly(claim, made, pod) is not bool(kinds)
    claim["metadata"]["ownerReferences"] = wanted
    assert is_owned_rightly(claim, made, pod)


def test_a_claim_that_another_controls_is_left_alone() -> None:
    made = stateful_set(3)
    made["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    pod = {"metadata": {"name": "web-0", "uid": "pod"}}
    other = {"kind": "Other", "apiVersion": "v1", "name": "x", "uid": "y", "controller": True}
    claim = {"metadata": {"name": "data-web-0", "ownerReferences": [other]}}
    assert has_other_controller(claim, made, pod) and is_owned_rightly(claim, made, pod)
