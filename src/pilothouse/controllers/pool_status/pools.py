"""What is known of a driver's pools: from their newest slices, from what claims have, and from taints of devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.controllers.pool_status.summaries import SummaryError, partition_types, shareable_summary
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

_KEEPING_OFF: Final = frozenset(("NoSchedule", "NoExecute"))
_MOST_MESSAGE: Final = 256


@dataclass(slots=True)
class Pool:
    """The slices of a pool's newest generation, and which of its devices claims have."""

    driver: str
    name: str
    slices: list[Object]
    used: set[str] = field(default_factory=set)
    consumed: dict[str, quantity.Quantity] = field(default_factory=dict)

    @property
    def devices(self) -> list[Object]:
        """All devices, in the order of slices."""
        return [device for each in self.slices for device in each["spec"].get("devices") or ()]

    @property
    def generation(self) -> int:
        """That of all its slices."""
        return int(self.slices[0]["spec"]["pool"]["generation"])

    @property
    def expected(self) -> int:
        """How many slices it should have."""
        return int(self.slices[0]["spec"]["pool"]["resourceSliceCount"])


def pool_statuses(
    spec: Object, slices: Iterable[Object], claims: Iterable[Object], rules: Sequence[Object]
) -> list[Object]:
    """The status of each pool that a request asks for, by name."""
    pools = _pools(spec, slices)
    for claim in claims:
        for result in (((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ():
            pool = pools.get(result["pool"])
            if pool is not None and result["driver"] == pool.driver and not result.get("adminAccess"):
                _use(pool, result)
    default = spec.get("defaultPartitionTypeAttribute")
    return [_status(pools[name], rules, default) for name in sorted(pools)]


def _pools(spec: Object, slices: Iterable[Object]) -> dict[str, Pool]:
    driver, wanted = spec["driver"], spec.get("poolName")
    found: dict[str, list[Object]] = {}
    for each in slices:
        stated = each["spec"]
        if stated["driver"] == driver and wanted in (None, "", stated["pool"]["name"]):
            found.setdefault(stated["pool"]["name"], []).append(each)
    return {name: Pool(driver, name, _newest(listed)) for name, listed in found.items()}


def _newest(slices: list[Object]) -> list[Object]:
    generation = max(each["spec"]["pool"]["generation"] for each in slices)
    return [each for each in slices if each["spec"]["pool"]["generation"] == generation]


def _use(pool: Pool, result: Object) -> None:
    pool.used.add(result["device"])
    for name, text in (result.get("consumedCapacity") or {}).items():
        amount = quantity.parse(str(text))
        pool.consumed[name] = pool.consumed[name] + amount if name in pool.consumed else amount


def _status(pool: Pool, rules: Sequence[Object], default: str | None) -> Object:
    status: dict[str, Any] = {"driver": pool.driver, "poolName": pool.name, "generation": pool.generation}
    nodes = {each["spec"].get("nodeName") or "" for each in pool.slices}
    if len(nodes) == 1 and "" not in nodes:
        status["nodeName"] = nodes.pop()
    count = len(pool.slices)
    if count < pool.expected:
        text = f"observed {count}/{pool.expected} slices at generation {pool.generation}"
        return {**status, **_validation_error(f"PoolIncomplete: pool {pool.driver}/{pool.name} is incomplete: {text}")}
    devices = pool.devices
    kept_off = sum(_is_kept_off(device, pool, rules) for device in devices)
    status |= {
        "resourceSliceCount": count,
        "totalDevices": len(devices),
        "allocatedDevices": len(pool.used),
        "availableDevices": max(0, len(devices) - len(pool.used) - kept_off),
        "unavailableDevices": kept_off,
    }
    return {**status, **_summaries(pool, default)}


def _summaries(pool: Pool, default: str | None) -> Object:
    """Partitions and shares. An error of one of them leaves out the partitions; shares are left out by their own."""
    message = ""
    found: Object = {}
    try:
        types = partition_types(pool.slices, pool.used, f"{pool.driver}/{pool.name}", pool.driver, default)
        if types:
            found["partitionSummary"] = types
    except SummaryError as error:
        message = str(error)
    try:
        shares = shareable_summary(pool.devices, pool.used, pool.consumed, f"{pool.driver}/{pool.name}")
        if shares is not None:
            found["shareableSummary"] = shares
    except SummaryError as error:
        message = message or str(error)
        found.pop("partitionSummary", None)
    return {**found, **_validation_error(message)} if message else found


def _validation_error(text: str) -> Object:
    return {"validationError": text[:_MOST_MESSAGE]}


def _is_kept_off(device: Object, pool: Pool, rules: Sequence[Object]) -> bool:
    """Whether a taint of the device, or of a rule that means it, keeps pods from it."""
    taints = [*(device.get("taints") or ()), *(rule["spec"]["taint"] for rule in rules if _means(rule, device, pool))]
    return any(taint["effect"] in _KEEPING_OFF for taint in taints)


def _means(rule: Object, device: Object, pool: Pool) -> bool:
    selector = rule["spec"].get("deviceSelector")
    if selector is None:
        return False
    facts = {"driver": pool.driver, "pool": pool.name, "device": device["name"]}
    return all(selector.get(name, fact) == fact for name, fact in facts.items())
