from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.pool_status.controller import is_over
from pilothouse.controllers.pool_status.pools import pool_statuses
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time
from pilothouse.testing.running_controllers import RunningControllers

DRIVER = "gpu.example.com"


def part(*devices: Object, pool: str = "p", generation: int = 1, count: int = 1, **more: Any) -> Object:
    stated = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return {"spec": {"driver": DRIVER, "pool": stated, "devices": list(devices), **more}}


def claim(*names: str, pool: str = "p", **more: Any) -> Object:
    results = [{"driver": DRIVER, "pool": pool, "device": name, **more} for name in names]
    return {"status": {"allocation": {"devices": {"results": results}}}}


def only(*slices: Object, claims: tuple[Object, ...] = (), rules: tuple[Object, ...] = (), **spec: Any) -> Object:
    [status] = pool_statuses({"driver": DRIVER, **spec}, slices, claims, rules)
    return status


def test_devices_are_counted() -> None:
    tainted = {"name": "d2", "taints": [{"key": "k", "effect": "NoExecute"}]}
    devices = ({"name": "d0"}, {"name": "d1"}, tainted, {"name": "d3"})
    selector = {"driver": DRIVER, "device": "d3"}
    rule = {"spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoSchedule"}}}
    claims = (claim("d0"), claim("d1", adminAccess=True), claim("d1", pool="other"))
    assert only(part(*devices, nodeName="n"), claims=claims, rules=(rule,)) == {
        "driver": DRIVER,
        "poolName": "p",
        "generation": 1,
        "nodeName": "n",
        "resourceSliceCount": 1,
        "totalDevices": 4,
        "allocatedDevices": 1,
        "availableDevices": 1,
        "unavailableDevices": 2,
    }


def test_only_the_newest_generation_counts_and_it_may_be_incomplete() -> None:
    old, new = part({"name": "d0"}), part({"name": "d1"}, generation=2, count=2)
    assert only(old, new)["validationError"] == (
        "PoolIncomplete: pool gpu.example.com/p is incomplete: observed 1/2 slices at generation 2"
    )


def test_pools_are_sorted_and_chosen_by_name() -> None:
    slices = [part(pool="b"), part(pool="a"), {"spec": {**part()["spec"], "driver": "other"}}]
    found = pool_statuses({"driver": DRIVER}, slices, (), ())
    assert [each["poolName"] for each in found] == ["a", "b"]
    assert only(*slices, poolName="b")["poolName"] == "b"


def partition(name: str, size: str, memory: int, **more: Any) -> Object:
    cost = [{"counterSet": "gpu", "counters": {"memory": {"value": f"{memory}Gi"}}}]
    return {"name": name, "attributes": {"size": {"string": size}}, "consumesCounters": cost, **more}


COUNTERS = [{"name": "gpu", "counters": {"memory": {"value": "40Gi"}}}]


def test_partitions_by_type() -> None:
    devices = [partition("whole", "large", 40), *(partition(f"s{number}", "small", 10) for number in range(4))]
    shown = only(
        part(*devices, sharedCounters=COUNTERS),
        claims=(claim("s0"),),
        defaultPartitionTypeAttribute=f"{DRIVER}/size",
    )
    assert shown["partitionSummary"] == [
        {"attribute": f"{DRIVER}/size", "type": "large", "total": 1, "allocatable": 0},
        {"attribute": f"{DRIVER}/size", "type": "small", "total": 4, "allocatable": 3},
    ]


@pytest.mark.parametrize(
    ("devices", "counters", "message"),
    [
        ([partition("a", "x", 1)], [], "PartitionTypeMissing: pool gpu.example.com/p declares partitionTypeAttribute"),
        (
            [{**partition("a", "x", 1), "attributes": {}}],
            COUNTERS,
            'PartitionTypeMissing: device "a" in pool gpu.example.com/p does not carry partition type attribute "size"',
        ),
        (
            [partition("a", "x", 1), partition("b", "x", 2)],
            COUNTERS,
            'PartitionCostMismatch: devices of partition type "x" in pool gpu.example.com/p consume different counters',
        ),
    ],
)
def test_faults_of_partitions(devices: list[Object], counters: list[Object], message: str) -> None:
    shown = only(part(*devices, sharedCounters=counters, partitionTypeAttribute="size"))
    assert shown["validationError"].startswith(message)
    assert "partitionSummary" not in shown


def test_shares_of_devices() -> None:
    devices = [
        {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}} for name in "ab"
    ]
    shown = only(part(*devices), claims=(claim("a", consumedCapacity={"memory": "2Gi"}),))
    assert shown["shareableSummary"] == {
        "fullyAvailableDevices": 1,
        "partiallyAvailableDevices": 1,
        "capacity": [{"name": "memory", "total": "16Gi", "consumed": "2Gi", "available": "14Gi"}],
    }


def test_requests_do_not_stay() -> None:
    made = "2026-01-01T00:00:00Z"
    pending: Object = {"metadata": {"creationTimestamp": made}}
    condition = {"type": "Complete", "lastTransitionTime": "2026-01-01T05:00:00Z"}
    answered = {**pending, "status": {"conditions": [condition]}}

    def at(text: str) -> Instant:
        return parse_time(f"2026-01-{text}:00Z")

    assert not is_over(pending, at("01T23:59"))
    assert is_over(pending, at("02T00:01"))
    assert not is_over(answered, at("01T05:59"))
    assert is_over(answered, at("01T06:01"))


async def test_a_request_is_answered_once() -> None:
    flags = (
        "--authorization-mode=Node,RBAC",
        "--feature-gates=DRAResourcePoolStatus=true",
        "--runtime-config=resource.k8s.io/v1alpha3=true",
    )
    async with RunningControllers("pool_status", flags=flags) as cluster:
        slices = cluster.of("resource.k8s.io", "v1", "resourceslices")
        await slices.create({"metadata": {"name": "s"}, **part({"name": "d0"}, nodeName="n")})
        requests = cluster.of("resource.k8s.io", "v1alpha3", "resourcepoolstatusrequests")
        await requests.create({"metadata": {"name": "r"}, "spec": {"driver": DRIVER}})
        answered = await cluster.wait(requests, "", "r", lambda obj: obj.get("status"))
        assert answered["status"]["poolCount"] == 1
        assert answered["status"]["pools"][0]["availableDevices"] == 1
        [condition] = answered["status"]["conditions"]
        assert (condition["type"], condition["message"]) == ("Complete", "Calculated status for 1 pools")
