"""Pods for which room is being made on a node: nobody of the same or lower priority may take that room meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import Snapshot


class Nominations:
    """Which pods are nominated for which node."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._pods: dict[str, tuple[PodInfo, str]] = {}

    def note(self, pod: PodInfo) -> None:
        """Take over what the status of a pod says."""
        if pod.nominated_node:
            self._pods[pod.uid] = (pod, pod.nominated_node)

    def nominate(self, pod: PodInfo, node_name: str) -> None:
        """Room is made for the pod from now on."""
        self._pods[pod.uid] = (pod, node_name)

    def forget(self, uid: str) -> bool:
        """The pod needs no room any more; whether it had any."""
        return self._pods.pop(uid, None) is not None

    @contextmanager
    def counted(self, pod: PodInfo) -> Iterator[None]:
        """While this pod looks for a node, those that come first count as if they were on theirs."""
        added: list[str] = []
        for uid, (other, node_name) in self._pods.items():
            comes_first = uid != pod.uid and other.priority >= pod.priority
            if comes_first and self._snapshot.node(node_name) is not None and self._snapshot.node_name_of(uid) is None:
                self._snapshot.add_pod(other, node_name)
                added.append(uid)
        try:
            yield
        finally:
            for uid in added:
                self._snapshot.remove_pod(uid)
