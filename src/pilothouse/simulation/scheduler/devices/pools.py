"""The devices within reach of a node, by pool.

A driver publishes a pool in slices; all slices of the newest generation together are the pool. Some of them may be for
other nodes. A pool of which slices are missing is incomplete, one whose slices contradict each other is invalid:
nothing is taken from either. Pools are in the order of driver and name, those with binding conditions last, and the
devices within in the order of their slices' names: drivers may steer by names what is taken first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pilothouse.controllers.runtime.node_selection import matches_terms
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.snapshot import NodeInfo

Counters = Mapping[str, Mapping[str, quantity.Quantity]]
"""Amounts by counter set and counter."""


class DeviceId(NamedTuple):
    """What names a device in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolId(NamedTuple):
    """What names a pool."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class Device(NamedTuple):
    """A device and the slice that it stands in."""

    id: DeviceId
    spec: Object
    slice: Object

    @property
    def is_shared(self) -> bool:
        """Whether several claims may have a part of it each."""
        return bool(self.spec.get("allowMultipleAllocations"))

    @property
    def consumes(self) -> Counters:
        """What it takes from the counters of its pool."""
        return {each["counterSet"]: _amounts(each) for each in self.spec.get("consumesCounters") or ()}

    def is_reachable(self, info: NodeInfo) -> bool:
        """Whether the device itself, where devices of a slice differ in that, can be used on a node."""
        return not self.slice["spec"].get("perDeviceNodeSelection") or _means(self.spec, info)


@dataclass(slots=True)
class Pool:
    """A pool as a node sees it."""

    id: PoolId
    devices: Sequence[Device] = ()
    elsewhere: Sequence[Device] = ()
    """Devices of the pool that other nodes use; they draw on the same counters."""
    counters: Counters = field(default_factory=dict)
    is_incomplete: bool = False
    is_invalid: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether devices may be taken from it now."""
        return not self.is_incomplete and not self.is_invalid


class Inventory:
    """All slices of the cluster, ready to be looked at for one node after the other."""

    def __init__(self, slices: Iterable[Object]) -> None:
        self._by_node: dict[str, list[Object]] = {}
        self._shared: list[Object] = []
        self._by_pool: dict[PoolId, list[Object]] = {}
        for each in slices:
            spec = each["spec"]
            self._by_pool.setdefault(PoolId(spec["driver"], spec["pool"]["name"]), []).append(each)
            node = spec.get("nodeName")
            (self._by_node.setdefault(node, []) if node else self._shared).append(each)

    def pools(self, info: NodeInfo) -> list[Pool]:
        """The pools with anything for the node."""
        relevant: dict[PoolId, list[Object]] = {}
        for each in (*self._by_node.get(info.name, ()), *self._shared):
            if _concerns(each["spec"], info):
                _add_newest(relevant, each)
        found = [pool for each, slices in relevant.items() if (pool := self._pool(each, slices)) is not None]
        return sorted(found, key=lambda pool: (_has_binding_conditions(pool), pool.id))

    def _pool(self, pool: PoolId, slices: list[Object]) -> Pool | None:
        stated = slices[0]["spec"]["pool"]
        others: list[Object] = []
        if len(slices) != stated["resourceSliceCount"]:
            every = self._by_pool[pool]
            if any(each["spec"]["pool"]["generation"] > stated["generation"] for each in every):
                return None
            same = [each for each in every if each["spec"]["pool"]["generation"] == stated["generation"]]
            if len(same) != stated["resourceSliceCount"]:
                return Pool(pool, is_incomplete=True)
            names = {each["metadata"]["name"] for each in slices}
            others = [each for each in same if each["metadata"]["name"] not in names]
        return _build(pool, sorted(slices, key=lambda each: str(each["metadata"]["name"])), others)


def _add_newest(pools: dict[PoolId, list[Object]], each: Object) -> None:
    stated = each["spec"]["pool"]
    key = PoolId(each["spec"]["driver"], stated["name"])
    known = pools.get(key)
    if known is None or stated["generation"] > known[0]["spec"]["pool"]["generation"]:
        pools[key] = [each]
    elif stated["generation"] == known[0]["spec"]["pool"]["generation"]:
        known.append(each)


def _concerns(spec: Object, info: NodeInfo) -> bool:
    if spec.get("perDeviceNodeSelection"):
        return any(_means(device, info) for device in spec.get("devices") or ())
    return _means(spec, info)


def _means(chosen: Object, info: NodeInfo) -> bool:
    """Whether the fields that choose nodes, of a slice or of a device, mean this node."""
    if chosen.get("nodeName"):
        return bool(chosen["nodeName"] == info.name)
    if chosen.get("allNodes"):
        return True
    selector = chosen.get("nodeSelector")
    return selector is not None and matches_terms(selector, info)


def _build(pool: PoolId, slices: Sequence[Object], others: Sequence[Object]) -> Pool:
    devices, elsewhere = _devices(pool, slices), _devices(pool, others)
    stated = [each for part in (*slices, *others) for each in part["spec"].get("sharedCounters") or ()]
    counters = {each["name"]: _amounts(each) for each in stated}
    is_invalid = (
        len({each.id for each in devices}) != len(devices)
        or len(counters) != len(stated)
        or not all(_is_covered(each.consumes, counters) for each in (*devices, *elsewhere))
    )
    return Pool(pool, is_invalid=True) if is_invalid else Pool(pool, devices, elsewhere, counters)


def _devices(pool: PoolId, slices: Iterable[Object]) -> list[Device]:
    return [
        Device(DeviceId(*pool, device["name"]), device, each)
        for each in slices
        for device in each["spec"].get("devices") or ()
    ]


def _is_covered(consumed: Counters, counters: Counters) -> bool:
    return all(name in counters and each.keys() <= counters[name].keys() for name, each in consumed.items())


def _amounts(holder: Object) -> dict[str, quantity.Quantity]:
    return {name: quantity.parse(str(each["value"])) for name, each in (holder.get("counters") or {}).items()}


def _has_binding_conditions(pool: Pool) -> bool:
    return any(device.spec.get("bindingConditions") for device in pool.devices)
