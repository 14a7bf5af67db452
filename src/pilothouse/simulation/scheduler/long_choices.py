"""Long choices are made aside, and meanwhile nothing changes what they look at.

Choosing a node reads the snapshot from one end to the other, so it is done in one go. Of usual pods that is a matter of
microseconds; a pod with thousands of terms, or one that comes to many such pods, takes a second. That is done in a
thread, and what the scheduler hears of the cluster waits until it is over, in its order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from pilothouse.machinery.workers import LONG, weighed
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import Snapshot

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
Change = Callable[[], None]
_TURN_SECONDS: Final = 0.002


class LongChoices:
    """Makes choices, and takes changes of what they look at."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._held: deque[Change] | None = None
        """What waits for the choice that is being made aside; None while none is."""

    def take(self, change: Change) -> None:
        """Make a change: now, or after the choice that is being made and all changes before this one."""
        if self._held is None:
            change()
        else:
            self._held.append(change)

    async def make(self, pod: PodInfo, choose: Callable[..., Result], *arguments: Any) -> Result:
        """What ``choose`` gives, which is about this pod. There must be one at a time."""
        weight = weight_of(pod, self._snapshot)
        if weight < LONG:
            return choose(*arguments)
        self._held = deque()
        try:
            return await weighed(weight, choose, *arguments)
        finally:
            await self._catch_up(self._held)

    async def _catch_up(self, held: deque[Change]) -> None:
        began = time.perf_counter()
        try:
            while held:
                change = held.popleft()
                try:
                    change()
                except Exception:
                    logger.exception("a change of the cluster is lost to the scheduler")
                if time.perf_counter() - began > _TURN_SECONDS:
                    await asyncio.sleep(0)
                    began = time.perf_counter()
        finally:
            self._held = None


def weight_of(pod: PodInfo, snapshot: Snapshot) -> int:
    """How long a choice takes, in bytes of input that take as long: each term is held against each pod.

    Devices are tried in all combinations, which may end with the first or with a million.
    """
    if pod.spec.get("resourceClaims"):
        return LONG
    return pod.terms * (1 + snapshot.pod_count) + pod.parts * (1 + len(snapshot.nodes)) + snapshot.terms
