"""How long a failed daemon pod stays before it is replaced: a second, two, four, ... up to a quarter of an hour."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.machinery.objects import Object

_FIRST: Final = 1.0
_MOST: Final = 900.0


class FailedPodBackoff:
    """The back-off of each node, for each daemon set anew with each of its generations."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sets: dict[str, tuple[int, dict[str, tuple[float, float]]]] = {}

    def wait(self, daemon_set: Object, node: str) -> float:
        """Seconds that a failed pod on the node has to stay; if none, the next one has to stay for longer."""
        generation = int((daemon_set.get("status") or {}).get("observedGeneration") or 0)
        uid = daemon_set["metadata"]["uid"]
        known, nodes = self._sets.get(uid, (generation, {}))
        if known != generation:
            nodes = {}
        self._sets[uid] = (generation, nodes)
        now = self._clock.monotonic()
        delay, at = nodes.get(node, (0.0, 0.0))
        if delay and now - at < delay:
            return delay - (now - at)
        fresh = not delay or now - at > 2 * _MOST
        nodes[node] = (_FIRST if fresh else min(2 * delay, _MOST), now)
        return 0.0

    def forget(self, uid: str) -> None:
        """The daemon set has gone."""
        self._sets.pop(uid, None)
