"""How fast a namespace's controllers make pods while thousands of its pods wait for a node.

Whoever asks for two thousand million replicas gets them, as from kube-controller-manager, but that one is held to
twenty requests a second. So that large workloads are quick all the same, the pace begins only where nobody can say that
more pods would be of use: with five thousand that no node has taken.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.machinery.objects import Object

AGAIN_SECONDS: Final = 1.0
"""When to ask again for what was not allowed."""
_MOST_WAITING: Final = 5_000
_RATE: Final = 20.0
_MOST_NAMESPACES: Final = 1_000
_WAITING: Final = "namespaces of pods that wait for a node"


class CreationPace:
    """What the controller of one kind may create."""

    def __init__(self, pods: Informer, clock: Clock) -> None:
        self._lister, self._clock = pods.lister, clock
        self._turns: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Of namespaces that were held: how many pods they may make, and since when it was not more."""
        pods.add_index(_WAITING, _waits)

    def allow(self, namespace: str, wanted: int) -> int:
        """How many of so many pods may be created now."""
        if self._lister.count(_WAITING, namespace) < _MOST_WAITING:
            return wanted
        now = self._clock.monotonic()
        turns, since = self._turns.pop(namespace, (0.0, now))
        turns = min(_RATE, turns + (now - since) * _RATE)
        allowed = min(wanted, int(turns))
        self._turns[namespace] = turns - allowed, now
        if len(self._turns) > _MOST_NAMESPACES:
            self._turns.popitem(last=False)
        return allowed


def _waits(pod: Object) -> list[str]:
    if pod["spec"].get("nodeName") or is_terminal(pod):
        return []
    return [pod["metadata"]["namespace"]]
