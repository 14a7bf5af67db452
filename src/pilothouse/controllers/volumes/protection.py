"""Finalizers that keep what is in use: claims of running pods, volumes of claims, classes of volume attributes.

Each kind has its finalizer, given to every object, and a question whether an object is in use. An object that is being
deleted keeps its finalizer until the answer is no.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object


@dataclass(frozen=True, slots=True)
class Protected:
    """A kind whose objects are kept while they are in use."""

    controller: str
    finalizer: str
    objects: Informer
    client: ResourceClient
    is_used: Callable[[Object], Awaitable[bool]]
    others: Sequence[Informer] = ()
    """What the answer is made of."""


class Protection:
    """Gives and takes the finalizer of a kind."""

    def __init__(self, context: ControllerContext, kind: Protected) -> None:
        self._kind = kind
        self.controller: Controller[Key] = Controller(
            kind.controller, self._reconcile, wait_for=[kind.objects, *kind.others], clock=context.clock
        )
        kind.objects.add_handler(self._seen, lambda old, new: self._seen(new), name=kind.controller)

    def _seen(self, obj: Object) -> None:
        if bool(obj["metadata"].get("deletionTimestamp")) == self._has_finalizer(obj):
            self.controller.queue.add(key_of(obj))

    def _has_finalizer(self, obj: Object) -> bool:
        return self._kind.finalizer in (obj["metadata"].get("finalizers") or ())

    async def _reconcile(self, key: Key) -> None:
        obj = self._kind.objects.lister.get(*key)
        if obj is None:
            return
        is_going, has_finalizer = bool(obj["metadata"].get("deletionTimestamp")), self._has_finalizer(obj)
        if is_going != has_finalizer or (is_going and await self._kind.is_used(obj)):
            return
        changed = copy_of(obj)
        others = [each for each in changed["metadata"].get("finalizers") or () if each != self._kind.finalizer]
        changed["metadata"]["finalizers"] = others if is_going else [*others, self._kind.finalizer]
        try:
            await self._kind.client.update(changed)
        except errors.NotFound:
            return
