"""How many replicas a metric asks for. Amounts are in thousandths, as everywhere in autoscaling.

Pods that are not ready count as idle when more replicas are asked for, pods without a metric as busy when fewer are:
nothing is decided that the missing half could turn around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.controllers.runtime.pods import condition_of, is_ready, phase_of
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

_STARTING_SECONDS: Final = 300.0
_FIRST_READY_SECONDS: Final = 30.0
_MOST: Final = 2**31 - 1


class NoProposal(Exception):
    """A metric does not tell how many replicas are needed; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one pod uses, measured over a window that ended at some second."""

    value: int
    at: float = 0.0
    window: float = 60.0


Readings = dict[str, Reading]


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far from its target a metric may be without consequences."""

    down: float = 0.1
    up: float = 0.1

    def cover(self, ratio: float) -> bool:
        """Whether nothing need be done."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Groups:
    """Pods by what can be said of them."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def group(pods: Iterable[Object], readings: Mapping[str, Reading], resource: str, now: Instant) -> Groups:
    """Sort pods. Those that are starting do not count by their CPU, which says more about the start than the load."""
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = pod["metadata"]["name"]
        reading = readings.get(name)
        if pod["metadata"].get("deletionTimestamp") or phase_of(pod) == "Failed":
            ignored.add(name)
        elif phase_of(pod) == "Pending":
            unready.add(name)
        elif reading is None:
            missing.add(name)
        elif resource == "cpu" and _is_starting(pod, reading, now):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_starting(pod: Object, reading: Reading, now: Instant) -> bool:
    condition, started = condition_of(pod, "Ready"), pod["status"].get("startTime")
    if condition is None or not started:
        return True
    start, is_unready = parse_time(started).seconds, condition["status"] == "False"
    changed = parse_time(condition["lastTransitionTime"]).seconds
    if start + _STARTING_SECONDS > now.seconds:
        return is_unready or reading.at < changed + reading.window
    return is_unready and start + _FIRST_READY_SECONDS > changed


def propose(
    current: int,
    readings: Readings,
    groups: Groups,
    ratio_of: Callable[[Readings], float],
    busy: Callable[[str], int],
    tolerances: Tolerances,
) -> int:
    """How many replicas bring the ratio of use to target to one. ``busy`` is what a pod without a reading may use."""
    known = counted(readings, groups)
    ratio = ratio_of(known)
    adds_unready = bool(groups.unready) and ratio > 1.0
    if not adds_unready and not groups.missing:
        return current if tolerances.cover(ratio) else math.ceil(ratio * groups.ready)
    for name in groups.missing:
        if ratio != 1.0:
            known[name] = Reading(busy(name) if ratio < 1.0 else 0)
    if adds_unready:
        known |= {name: Reading(0) for name in groups.unready}
    adjusted = ratio_of(known)
    if tolerances.cover(adjusted) or (ratio < 1.0 < adjusted) or (adjusted < 1.0 < ratio):
        return current
    replicas = math.ceil(adjusted * len(known))
    turned = (adjusted < 1.0 and replicas > current) or (adjusted > 1.0 and replicas < current)
    return current if turned else replicas


def counted(readings: Mapping[str, Reading], groups: Groups) -> Readings:
    """The readings that count. Raises NoProposal if there are none."""
    left_out = groups.ignored | groups.unready
    known = {name: reading for name, reading in readings.items() if name not in left_out}
    if not known:
        raise NoProposal("did not receive metrics for targeted pods (pods might be unready)")
    return known


def utilization(readings: Mapping[str, Reading], requests: Mapping[str, int]) -> tuple[int, int]:
    """What pods use in percent of their requests, and on average. Raises NoProposal."""
    known = {name: reading.value for name, reading in readings.items() if name in requests}
    wanted = sum(requests[name] for name in known)
    if not wanted:
        raise NoProposal("no metrics returned matched known pods")
    return sum(known.values()) * 100 // wanted, sum(known.values()) // len(known)


def average(readings: Mapping[str, Reading]) -> int:
    """What pods use on average."""
    return sum(reading.value for reading in readings.values()) // len(readings)


def propose_for_total(current: int, usage: int, target: int, pods: list[Object], tolerances: Tolerances) -> int:
    """How many replicas an amount asks for that is not measured by pod."""
    ratio = usage / target
    if current == 0:
        return math.ceil(ratio)
    if tolerances.cover(ratio):
        return current
    if not pods:
        raise NoProposal("unable to calculate ready pods: no pods returned by selector while calculating replica count")
    ready = sum(1 for pod in pods if phase_of(pod) == "Running" and is_ready(pod))
    return min(_MOST, math.ceil(ratio * ready))


def propose_per_pod(replicas: int, usage: int, target: int, tolerances: Tolerances) -> int:
    """How many replicas share an amount so that each has its target."""
    if replicas and tolerances.cover(usage / (target * replicas)):
        return replicas
    return min(_MOST, math.ceil(usage / target))


def requests_of(pods: Iterable[Object], container: str, resource: str) -> dict[str, int]:
    """What pods, or one container of each, request. Raises NoProposal where a request is missing."""
    return {pod["metadata"]["name"]: _request(pod, container, resource) for pod in pods}


def _request(pod: Object, container: str, resource: str) -> int:
    name, spec = pod["metadata"]["name"], pod["spec"]
    own = (spec.get("resources") or {}).get("requests")
    if own and not container:
        if resource not in own:
            raise NoProposal(f"missing pod-level request for {resource} in Pod {name}")
        return quantity.parse(str(own[resource])).milli_value()
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    total, found = 0, False
    for each in [*spec["containers"], *sidecars]:
        if container not in ("", each["name"]):
            continue
        found = True
        requested: dict[str, Any] = (each.get("resources") or {}).get("requests") or {}
        if resource not in requested:
            raise NoProposal(f"missing request for {resource} in container {each['name']} of Pod {name}")
        total += quantity.parse(str(requested[resource])).milli_value()
    if container and not found:
        raise NoProposal(f"container {container} not found in Pod {name}")
    return total
