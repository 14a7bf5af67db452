"""Which pods go first when there are too many: those that are worth least to their owner.

Unscheduled before scheduled, pending before running, unready before ready, cheap before dear (annotation
``controller.kubernetes.io/pod-deletion-cost``), crowded before alone on their node, young before old (by orders of
magnitude, so that pods of about the same age go at random), often restarted before seldom.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pilothouse.controllers.runtime.pods import condition_of, is_ready, phase_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def pods_to_delete(pods: Sequence[Object], related: Iterable[Object], count: int, now: Instant) -> list[Object]:
    """So many pods, the least valuable first. ``related`` are those of all owners of the same workload."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(_node_of(pod) for pod in related if is_ready(pod) and _node_of(pod))
    ages = _AgeRanks(now)
    return sorted(pods, key=lambda pod: _value(pod, crowd, ages))[:count]


def _value(pod: Object, crowd: Counter[str], ages: _AgeRanks) -> tuple[Any, ...]:
    ready = is_ready(pod)
    return (
        bool(_node_of(pod)),
        _PHASES.get(phase_of(pod), 0),
        ready,
        _cost(pod),
        -crowd[_node_of(pod)] if _node_of(pod) else 0,
        ages[_ready_since(pod)] if ready else 0,
        -_most_restarts(pod),
        ages[pod["metadata"].get("creationTimestamp")],
        pod["metadata"]["uid"],
    )


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _cost(pod: Object) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(_COST, "0"))
    except ValueError:
        return 0


def _ready_since(pod: Object) -> str | None:
    since: str | None = (condition_of(pod, "Ready") or {}).get("lastTransitionTime")
    return since


class _AgeRanks(dict[str | None, int]):
    """The orders of magnitude of ages, by since when; none at all is younger than any. Pods share their seconds."""

    def __init__(self, now: Instant) -> None:
        super().__init__()
        self._now = now

    def __missing__(self, since: str | None) -> int:
        rank = self[since] = self._rank(since) if since else -1
        return rank

    def _rank(self, since: str) -> int:
        age = self._now.since(parse_time(since)) * 1e9
        return 0 if age < 1 else int(math.log2(age))


def _most_restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(each.get("restartCount") or 0) for each in statuses), default=0)
