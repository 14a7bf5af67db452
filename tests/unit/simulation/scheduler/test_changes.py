"""What may help a pod that fits nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.simulation.scheduler.changes import Change, helpful
from pilothouse.simulation.scheduler.filters.verdict import Verdict
from pilothouse.simulation.scheduler.placement import NoFit

from .conftest import Cluster

FULL = Verdict(("Too many pods",))
ELSEWHERE = Verdict(("node(s) didn't match Pod's node affinity/selector",), resolvable=False)
SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]


@pytest.mark.parametrize(
    ("verdicts", "room"), [({"a": ELSEWHERE}, False), ({"a": ELSEWHERE, "b": FULL}, True), ({}, True)]
)
def test_room_helps_where_a_node_might_have_some(cluster: Cluster, verdicts: dict[str, Verdict], room: bool) -> None:
    no_fit = NoFit(len(verdicts), verdicts, for_all="" if verdicts else "no claim")
    found = helpful(cluster.pod("a"), no_fit)
    assert found == {Change.NODES} | ({Change.ROOM} if room else set())


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, Change.VOLUMES),
        ({"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, Change.DEVICES),
        ({"topologySpreadConstraints": SPREAD}, Change.PODS),
    ],
)
def test_what_a_pod_asks_for(cluster: Cluster, spec: dict[str, Any], change: Change) -> None:
    assert helpful(cluster.pod("a", **spec), NoFit(1, {"a": ELSEWHERE})) == {Change.NODES, change}
