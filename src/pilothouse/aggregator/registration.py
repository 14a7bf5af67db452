"""Registering group versions that this process serves itself, as APIServices.

Two ways: those of the built-in API are put right once, when the server starts; those of custom resources for as long as
they are served. What is stored has its say too, by its label ``kube-aggregator.kubernetes.io/automanaged``:

    stored                          not wanted        wanted at start   wanted always
    nothing                         -                 create once       create
    without the label               -                 -                 -
    onstart, came after our start   -                 -                 -
    onstart, there at our start     delete once       update once       update once
    true                            delete            update once       update
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from pilothouse.aggregator.local_availability import local_condition
from pilothouse.apis.resources import Version
from pilothouse.controllers.own_objects import (
    condition_of,
    create,
    existing,
    remove,
    update,
)
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.store.store import Store

AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
ALWAYS: Final = "true"
OWN_GROUP: Final = "apiregistration.k8s.io"


def api_service(group: str, version: str, priority: tuple[int, int], managed: str = ON_START) -> Object:
    """The APIService of a group version that is served here."""
    spec: Object = {"group": group} if group else {}
    spec |= {"version": version, "groupPriorityMinimum": priority[0], "versionPriority": priority[1]}
    return {
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}},
        "spec": spec,
        "status": {"conditions": [local_condition()]},
    }


def built_in_services(versions: Iterable[Version]) -> list[Object]:
    """Those of the built-in API. APIServices themselves are not registered."""
    return [
        api_service(version.group, version.version, version.priority)
        for version in versions
        if version.group != OWN_GROUP
    ]


class AutoRegistration:
    """Keeps the APIServices of what is served here. Add what is wanted at start before ``start``."""

    def __init__(self, services: Store, informers: InformerFactory) -> None:
        self._services = services
        self._wanted: dict[str, Object] = {}
        self._at_start: set[str] = set()
        self._synced: set[str] = set()
        self._unavailable: set[str] = set()
        self.controller: Controller[str] = Controller("APIService registration", self.reconcile, workers=5)
        self._informer = informers.of(OWN_GROUP, "v1", "apiservices")
        self._informer.add_handler(self._came, lambda old, new: self._came(new), self._went, name="registration")

    def add(self, service: Object) -> None:
        """Want an APIService; its label says for how long."""
        name = service["metadata"]["name"]
        self._wanted[name] = service
        if service["metadata"]["labels"][AUTOMANAGED] == ON_START:
            self._unavailable.add(name)
        self.controller.queue.add(name)

    def discard(self, name: str) -> None:
        """Want an APIService no longer."""
        self._wanted.pop(name, None)
        self.controller.queue.add(name)

    async def start(self, supervisor: Supervisor) -> None:
        """Put everything right once, all at a time, then go on."""
        await self._informer.wait_synced()
        self._at_start = {entry.name for entry in self._services.cache.entries()}
        names = self._at_start | set(self._wanted)
        await asyncio.gather(*(self.controller.reconcile(name) for name in names))
        self.controller.start(supervisor)

    def missing(self) -> str:
        """The health check: what was to be registered at start and has not been seen to be available yet."""
        return f"missing APIService: [{' '.join(sorted(self._unavailable))}]" if self._unavailable else ""

    def _came(self, service: Object) -> None:
        if (condition_of(service, "Available") or {}).get("status") == "True":
            self._unavailable.discard(service["metadata"]["name"])
        self.controller.queue.add(service["metadata"]["name"])

    def _went(self, service: Object) -> None:
        self.controller.queue.add(service["metadata"]["name"])

    async def reconcile(self, name: str) -> None:
        """One APIService, by the table above."""
        wanted = self._wanted.get(name)
        stored = await existing(self._services, "", name)
        await self._settle(name, wanted, stored, has_synced=name in self._synced)
        self._synced.add(name)

    async def _settle(self, name: str, wanted: Object | None, stored: Object | None, *, has_synced: bool) -> None:
        managed = _managed(stored)
        if (wanted is None and stored is None) or (has_synced and _managed(wanted) == ON_START):
            return
        if stored is None:
            assert wanted is not None
            await create(self._services, {**wanted, "metadata": dict(wanted["metadata"])})
        elif managed not in (ON_START, ALWAYS) or (managed == ON_START and (name not in self._at_start or has_synced)):
            return
        elif wanted is None:
            await remove(self._services, "", name, stored["metadata"]["uid"])
        elif stored["spec"] != wanted["spec"]:
            await update(self._services, "", name, lambda obj: {**obj, "spec": wanted["spec"]})


def _managed(service: Object | None) -> str:
    labels = (service or {"metadata": {}})["metadata"].get("labels") or {}
    return str(labels.get(AUTOMANAGED, ""))
