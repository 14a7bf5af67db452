"""Group versions that are never looked for at peers: those of custom resources and of APIServices with a service.

Every server learns of them from the store itself. One that is deleted stays out for five minutes more: peers may not
have heard of it yet, and what they said they serve was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

GRACE_SECONDS: Final = 300.0
_ALL: Final = "all"


class Exclusions:
    """Keeps ``note`` informed of all that are excluded now."""

    def __init__(
        self, informers: InformerFactory, note: Callable[[Set[GroupVersion]], object], clock: Clock = SYSTEM
    ) -> None:
        self._note, self._clock = note, clock
        self._definitions = informers.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        self._services = informers.of("apiregistration.k8s.io", "v1", "apiservices")
        waited = (self._definitions, self._services)
        self.controller: Controller[str] = Controller(
            "group versions of peers", self.reconcile, wait_for=waited, clock=clock
        )
        for informer in waited:
            informer.add_handler(self._changed, lambda old, new: self._changed(new), self._changed, name="peers")
        self._active: frozenset[GroupVersion] = frozenset()
        self._deleted: dict[GroupVersion, float] = {}

    def start(self, supervisor: Supervisor) -> None:
        """Follow the store."""
        self.controller.queue.add(_ALL)
        self.controller.start(supervisor)

    async def wait_synced(self) -> None:
        """Return when all there are have been taken out."""
        await self._definitions.wait_synced()
        await self._services.wait_synced()
        await self.reconcile(_ALL)

    async def reconcile(self, key: str) -> float | None:
        """Look at all there are; the answer is in how many seconds the next one's time is over."""
        now = self._clock.monotonic()
        active = frozenset(
            gv
            for informer, versions in ((self._definitions, _defined), (self._services, _served_elsewhere))
            for obj in informer.lister.list()
            for gv in versions(obj)
        )
        self._deleted |= dict.fromkeys(self._active - active, now)
        self._deleted = {gv: at for gv, at in self._deleted.items() if now - at < GRACE_SECONDS and gv not in active}
        self._active = active
        self._note(active | self._deleted.keys())
        return min(self._deleted.values()) + GRACE_SECONDS - now if self._deleted else None

    def _changed(self, obj: Object) -> None:
        self.controller.queue.add(_ALL)


def _defined(definition: Object) -> list[GroupVersion]:
    spec = definition["spec"]
    return [GroupVersion(spec["group"], version["name"]) for version in spec.get("versions") or ()]


def _served_elsewhere(service: Object) -> list[GroupVersion]:
    spec = service["spec"]
    return [] if spec.get("service") is None else [GroupVersion(spec.get("group", ""), spec.get("version", ""))]
