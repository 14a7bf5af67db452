"""Evicts pods from nodes with NoExecute taints: at once, or when the time that the pod tolerates them is over.

That time begins when pod and taints are first seen together, not when the taints were added: a pod that comes to a node
that was lost long ago has its time as well. A time that runs is cut short or called off, but never made another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import PODS_BY_NODE, Key, key_of
from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time

_NAME: Final = "taint-eviction-controller"
_ACCOUNT: Final = "node-controller"


def start(context: ControllerContext) -> None:
    """Start the taint eviction controller."""
    TaintEviction(context).start(context.supervisor)


class _Scheduled(NamedTuple):
    """When a pod is to go, by the clock that only grows."""

    uid: str
    at: float


class TaintEviction:
    """Looks at each pod whose node has such taints. Keys are pods."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._nodes = context.informers.of("", "v1", "nodes")
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_NODE)
        self._client = context.client(_ACCOUNT).of("", "v1", "pods")
        self._events = context.recorder(_NAME, _ACCOUNT)
        self._scheduled: dict[Key, _Scheduled] = {}
        self._controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=8, wait_for=[self._nodes, self._pods], clock=context.clock
        )
        self._nodes.add_handler(self._node_seen, self._node_changed, name=_NAME)
        self._pods.add_handler(self._pod_seen, self._pod_changed, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to evict."""
        self._controller.start(supervisor)

    def _node_seen(self, node: Object) -> None:
        if _evicting(node):
            self._wake_pods(node)

    def _node_changed(self, old: Object, new: Object) -> None:
        if _evicting(old) != _evicting(new):
            self._wake_pods(new)

    def _wake_pods(self, node: Object) -> None:
        for pod in self._pods.lister.by_index(PODS_BY_NODE, node["metadata"]["name"]):
            self._controller.queue.add(key_of(pod))

    def _pod_seen(self, pod: Object) -> None:
        node = self._nodes.lister.get("", pod["spec"].get("nodeName") or "")
        if node is not None and _evicting(node):
            self._controller.queue.add(key_of(pod))

    def _pod_changed(self, old: Object, new: Object) -> None:
        moved = old["spec"].get("nodeName") != new["spec"].get("nodeName")
        if moved or old["spec"].get("tolerations") != new["spec"].get("tolerations"):
            self._pod_seen(new)

    async def _reconcile(self, key: Key) -> float | None:
        pod = self._pods.lister.get(*key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            self._scheduled.pop(key, None)
            return None
        node = self._nodes.lister.get("", pod["spec"].get("nodeName") or "")
        taints = [] if node is None else _evicting(node)
        seconds = tolerated_seconds(taints, pod["spec"].get("tolerations") or ())
        if seconds is None:
            if self._scheduled.pop(key, None) is not None:
                text = f"Cancelling deletion of Pod {key[0]}/{key[1]}"
                self._events.event(pod, "Normal", "TaintManagerEviction", text)
            return None
        if seconds > 0 and (left := self._seconds_left(key, pod["metadata"]["uid"], seconds)) > 0:
            return left
        await self._evict(pod)
        return None

    def _seconds_left(self, key: Key, uid: str, seconds: float) -> float:
        """How long a pod still has of the time that began when it was first asked for."""
        now = self._clock.monotonic()
        known = self._scheduled.get(key)
        if known is None or known.uid != uid:
            known = self._scheduled[key] = _Scheduled(uid, now + seconds)
        return known.at - now

    async def _evict(self, pod: Object) -> None:
        metadata = pod["metadata"]
        where = (metadata["namespace"], metadata["name"])
        text = f"Marking for deletion Pod {where[0]}/{where[1]}"
        self._events.event(pod, "Normal", "TaintManagerEviction", text)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": format_time(self._clock.now()),
        }
        try:
            patch = {"metadata": {"uid": metadata["uid"]}, "status": {"conditions": [condition]}}
            await self._client.patch(*where, patch, "strategic", subresource="status")
            await self._client.delete(*where, uid=metadata["uid"])
        except errors.NotFound:
            return


def _evicting(node: Object) -> list[dict[str, Any]]:
    return [taint for taint in node["spec"].get("taints") or () if taint["effect"] == "NoExecute"]


def tolerated_seconds(taints: Sequence[Object], tolerations: Sequence[Object]) -> float | None:
    """For how long a pod may stay on a node with these taints; None for ever.

    The first toleration that covers a taint counts for it.
    """
    limits: list[float] = []
    for taint in taints:
        covering = next((each for each in tolerations if tolerates(each, taint)), None)
        if covering is None:
            return 0.0
        if (limit := covering.get("tolerationSeconds")) is not None:
            limits.append(max(0.0, limit))
    return min(limits, default=None)
