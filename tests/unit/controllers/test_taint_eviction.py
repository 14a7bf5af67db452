"""How long pods stay on nodes with taints that evict."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.taint_eviction import tolerated_seconds
from pilothouse.testing.running_clock import RunningClock
from pilothouse.testing.running_controllers import RunningControllers

TAINT = {"key": "k", "effect": "NoExecute"}
LONG_AGO = {**TAINT, "timeAdded": "2020-01-01T00:00:00Z"}
PATIENT = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0.0),
        ([{"key": "other", "operator": "Exists"}], 0.0),
        ([{"key": "k", "operator": "Exists"}], None),
        ([PATIENT], 300.0),
        ([{**PATIENT, "tolerationSeconds": -1}], 0.0),
        ([PATIENT, {"operator": "Exists", "tolerationSeconds": 5}], 300.0),
    ],
)
def test_how_long_a_taint_is_tolerated(tolerations: list[dict[str, Any]], seconds: float | None) -> None:
    assert tolerated_seconds([LONG_AGO], tolerations) == seconds


def test_the_shortest_time_counts() -> None:
    tolerations = [PATIENT, {"key": "j", "operator": "Exists", "tolerationSeconds": 7}]
    assert tolerated_seconds([TAINT, {**TAINT, "key": "j"}], tolerations) == 7.0
    assert tolerated_seconds([], tolerations) is None


async def make_pod(pods: ResourceClient, name: str, node: str, *tolerations: dict[str, Any]) -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": node, "tolerations": list(tolerations)}
    await pods.create({"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def is_going(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@pytest.mark.parametrize("taint", [TAINT, LONG_AGO], ids=["undated", "added long ago"])
async def test_the_time_begins_when_the_pod_comes(taint: dict[str, Any]) -> None:
    clock = RunningClock()
    async with RunningControllers("taint_eviction", clock=clock) as cluster:
        nodes, pods = cluster.of("", "v1", "nodes"), cluster.of("", "v1", "pods")
        await nodes.create({"metadata": {"name": "n"}, "spec": {"taints": [taint]}})
        await make_pod(pods, "patient", "n", PATIENT)
        await make_pod(pods, "impatient", "n")
        await cluster.wait(pods, "default", "impatient", is_going)
        assert not is_going(await pods.get("default", "patient"))
        await clock.advance_here(301)
        await cluster.wait(pods, "default", "patient", is_going)


async def test_what_is_tolerated_for_ever_is_called_off() -> None:
    async with RunningControllers("taint_eviction") as cluster:
        nodes, pods = cluster.of("", "v1", "nodes"), cluster.of("", "v1", "pods")
        await nodes.create({"metadata": {"name": "n"}, "spec": {"taints": [TAINT]}})
        await make_pod(pods, "patient", "n", PATIENT)
        await make_pod(pods, "impatient", "n")
        await cluster.wait(pods, "default", "impatient", is_going)
        await nodes.patch("", "n", {"spec": {"taints": None}})
        event = await cluster.wait_event("default", "TaintManagerEviction", "patient")
        assert event["message"] == "Cancelling deletion of Pod default/patient"
