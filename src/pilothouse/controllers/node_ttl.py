"""Tells kubelets by an annotation for how long they may keep secrets and config maps: longer in larger clusters.

Sizes at which the time changes overlap, so that a cluster on the edge does not go back and forth.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_ACCOUNT: Final = "ttl-controller"
_ANNOTATION: Final = "node.alpha.kubernetes.io/ttl"


class Step(NamedTuple):
    """So long in clusters of so many nodes."""

    least: int
    most: float
    seconds: int


STEPS: Final = (
    Step(0, 100, 0),
    Step(90, 500, 15),
    Step(450, 1000, 30),
    Step(900, 2000, 60),
    Step(1800, float("inf"), 300),
)


def step_for(nodes: int, step: int) -> int:
    """The step after the number of nodes has become this."""
    while nodes > STEPS[step].most:
        step += 1
    while nodes < STEPS[step].least:
        step -= 1
    return step


def start(context: ControllerContext) -> None:
    """Start the controller."""
    NodeTtl(context).controller.start(context.supervisor)


class NodeTtl:
    """Keeps the annotation of each node."""

    def __init__(self, context: ControllerContext) -> None:
        self._step = 0
        self._nodes = context.informers.of("", "v1", "nodes")
        self._client = context.client(_ACCOUNT).of("", "v1", "nodes")
        self.controller: Controller[Key] = Controller(
            _ACCOUNT, self._reconcile, workers=5, wait_for=[self._nodes], clock=context.clock
        )
        self._nodes.add_handler(
            self._seen, lambda old, new: self.controller.queue.add(key_of(new)), self._count, name=_ACCOUNT
        )

    def _seen(self, node: Object) -> None:
        self._count(node)
        self.controller.queue.add(key_of(node))

    def _count(self, node: Object) -> None:
        self._step = step_for(len(self._nodes.lister), self._step)

    async def _reconcile(self, key: Key) -> None:
        node = self._nodes.lister.get(*key)
        wanted = str(STEPS[self._step].seconds)
        if node is None or (node["metadata"].get("annotations") or {}).get(_ANNOTATION) == wanted:
            return
        try:
            await self._client.patch(*key, {"metadata": {"annotations": {_ANNOTATION: wanted}}}, "strategic")
        except errors.NotFound:
            return
