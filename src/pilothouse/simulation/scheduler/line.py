"""Who may be tried now, in which order: by priority, then namespaces in turns, then who came first.

    priority 5    shop: a1
    priority 0    shop: a2 a3 a4 …    blog: b1          out come a1, a2, b1, a3, a4

Ten thousand pods of one namespace, which may all fit nowhere, keep those of another waiting for one of them, not for
all. Within a namespace the order is kube-scheduler's.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

from pilothouse.simulation.scheduler.pod_info import PodInfo

Key = tuple[str, str]


class Line:
    """The pods that wait for nothing but their turn."""

    def __init__(self) -> None:
        self._namespaces: dict[int, OrderedDict[str, list[tuple[float, int, Key]]]] = {}
        """By priority: the namespaces, the one whose turn it is first, with heaps of their pods."""
        self._priorities: list[int] = []
        self._places: dict[Key, int] = {}
        """Of each pod the entry that counts: earlier ones may still be in a heap."""
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def add(self, pod: PodInfo, since: float) -> None:
        """Have a pod stand in line, as one that came at a time."""
        self._sequence += 1
        self._places[pod.key] = self._sequence
        namespaces = self._namespaces.get(pod.priority)
        if namespaces is None:
            namespaces = self._namespaces[pod.priority] = OrderedDict()
            heapq.heappush(self._priorities, -pod.priority)
        heapq.heappush(namespaces.setdefault(pod.namespace, []), (since, self._sequence, pod.key))

    def discard(self, key: Key) -> None:
        """The pod wants nothing any more."""
        self._places.pop(key, None)

    def pop(self) -> Key | None:
        """Whose turn it is; nobody's if nobody waits."""
        while self._priorities:
            priority = -self._priorities[0]
            namespaces = self._namespaces[priority]
            while namespaces:
                namespace, pods = next(iter(namespaces.items()))
                key = self._first(pods)
                if not pods:
                    del namespaces[namespace]
                else:
                    namespaces.move_to_end(namespace)
                if key is not None:
                    return key
            del self._namespaces[priority]
            heapq.heappop(self._priorities)
        return None

    def _first(self, pods: list[tuple[float, int, Key]]) -> Key | None:
        while pods:
            _, sequence, key = heapq.heappop(pods)
            if self._places.get(key) == sequence:
                del self._places[key]
                return key
        return None
