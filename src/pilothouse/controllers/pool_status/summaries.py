"""Two views of a pool: how many partitions of each type can still be had, and how much of devices that are shared.

Partitions of a device use up counters that they have in common, so that some of them leave no room for others. How many
of a type can be had is how many fit, one after the other, into what those in use have left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

_MOST: Final = 32
Counters = dict[tuple[str, str], quantity.Quantity]
"""Amounts by counter set and counter."""
_NONE: Final = quantity.parse("0")


class SummaryError(Exception):
    """A view cannot be made; the message says why."""


class Partition(NamedTuple):
    """A device, the attribute that tells its type, and the type, if it has one."""

    device: Object
    attribute: str
    type: str | None

    @property
    def cost(self) -> Counters:
        """What it takes of counters."""
        return dict(_counters(self.device.get("consumesCounters") or (), "counterSet"))


def partition_types(
    slices: Sequence[Object], used: set[str], pool: str, driver: str, default: str | None
) -> list[Object]:
    """How many partitions of each type there are, and how many of them can be had. Raises SummaryError."""
    partitions = list(_partitions(slices, driver, default))
    if not any(each.attribute for each in partitions):
        return []
    shared = [counters for each in slices for counters in each["spec"].get("sharedCounters") or ()]
    if not shared:
        text = "declares partitionTypeAttribute but publishes no sharedCounters"
        raise SummaryError(f"PartitionTypeMissing: pool {pool} {text}")
    groups = _groups(partitions, pool)
    if len(groups) > _MOST:
        text = f"has {len(groups)} partition types, exceeding the maximum of {_MOST}"
        raise SummaryError(f"PartitionSummaryOverCap: pool {pool} {text}")
    left = dict(_counters(shared, "name"))
    for each in partitions:
        if each.device["name"] in used:
            _take(left, each.cost)
    return [
        {"attribute": attribute, "type": type, "total": len(group), "allocatable": _fitting(group, used, left)}
        for (attribute, type), group in sorted(groups.items())
    ]


def _partitions(slices: Sequence[Object], driver: str, default: str | None) -> Iterator[Partition]:
    """All devices; the attribute is what their slice declares or, where no slice does, what the request says."""
    declares = any(each["spec"].get("partitionTypeAttribute") for each in slices)
    for each in slices:
        attribute = each["spec"].get("partitionTypeAttribute") or ("" if declares else default or "")
        for device in each["spec"].get("devices") or ():
            yield Partition(device, attribute, _type_of(device, attribute, driver) if attribute else None)


def _type_of(device: Object, attribute: str, driver: str) -> str | None:
    attributes = device.get("attributes") or {}
    found = attributes.get(attribute) or attributes.get(attribute.removeprefix(f"{driver}/")) or {}
    value: str | None = found.get("string")
    return value


def _groups(partitions: Iterable[Partition], pool: str) -> dict[tuple[str, str], list[Partition]]:
    groups: dict[tuple[str, str], list[Partition]] = {}
    for each in partitions:
        if not each.attribute or not each.device.get("consumesCounters"):
            continue
        if each.type is None:
            text = f'device "{each.device["name"]}" in pool {pool} does not carry partition type attribute'
            raise SummaryError(f'PartitionTypeMissing: {text} "{each.attribute}"')
        group = groups.setdefault((each.attribute, each.type), [])
        if group and group[0].cost != each.cost:
            text = f'devices of partition type "{each.type}" in pool {pool} consume different counters'
            raise SummaryError(f"PartitionCostMismatch: {text}")
        group.append(each)
    return groups


def _fitting(group: Iterable[Partition], used: set[str], left: Counters) -> int:
    left, count = dict(left), 0
    for each in group:
        cost = each.cost
        if each.device["name"] not in used and all(name in left and left[name] >= cost[name] for name in cost):
            _take(left, cost)
            count += 1
    return count


def _take(left: Counters, cost: Counters) -> None:
    for name, amount in cost.items():
        if name in left:
            left[name] = left[name] - amount


def _counters(sets: Iterable[Object], field: str) -> Iterator[tuple[tuple[str, str], quantity.Quantity]]:
    for each in sets:
        for name, counter in (each.get("counters") or {}).items():
            yield (each[field], name), quantity.parse(str(counter["value"]))


def shareable_summary(
    devices: Iterable[Object], used: set[str], consumed: Mapping[str, quantity.Quantity], pool: str
) -> Object | None:
    """How much of shared devices is taken; None where none are shared. Raises SummaryError."""
    shared = [device for device in devices if device.get("allowMultipleAllocations")]
    if not shared:
        return None
    total: dict[str, quantity.Quantity] = {}
    for device in shared:
        for name, stated in (device.get("capacity") or {}).items():
            amount = quantity.parse(str(stated["value"]))
            total[name] = total[name] + amount if name in total else amount
    if len(total) > _MOST:
        text = f"has {len(total)} shareable capacity keys, exceeding the maximum of {_MOST}"
        raise SummaryError(f"ShareableSummaryOverCap: pool {pool} {text}")
    partly = sum(device["name"] in used for device in shared)
    return {
        "fullyAvailableDevices": len(shared) - partly,
        "partiallyAvailableDevices": partly,
        "capacity": [_capacity(name, total[name], consumed.get(name, _NONE)) for name in sorted(total)],
    }


def _capacity(name: str, total: quantity.Quantity, consumed: quantity.Quantity) -> Object:
    left = total - consumed
    available = left if left.sign >= 0 else _NONE
    return {"name": name, "total": str(total), "consumed": str(consumed), "available": str(available)}
