"""APIServices of what this process serves itself are available: their condition says so."""

from __future__ import annotations

from pilothouse.aggregator.remote import AVAILABLE
from pilothouse.controllers.own_objects import condition_of, existing, set_condition, update_status
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store


class LocalAvailability:
    """Keeps the condition of APIServices without a service right."""

    def __init__(self, api_services: Store, informers: InformerFactory) -> None:
        self._api_services = api_services
        self.controller: Controller[str] = Controller("local APIService availability", self.reconcile, workers=5)
        self._informer = informers.of("apiregistration.k8s.io", "v1", "apiservices")
        self._informer.add_handler(self._came, lambda old, new: self._came(new), name="local availability")

    async def start(self, supervisor: Supervisor) -> None:
        """Judge what there is, then go on."""
        await self._informer.wait_synced()
        self.controller.start(supervisor)

    def _came(self, api_service: Object) -> None:
        if not _is_right(api_service):
            self.controller.queue.add(api_service["metadata"]["name"])

    async def reconcile(self, name: str) -> None:
        """Say of one APIService that it is available, unless that is said already."""
        stored = await existing(self._api_services, "", name)
        if stored is not None and not _is_right(stored):
            await update_status(self._api_services, "", name, _judged)


def local_condition() -> dict[str, str]:
    """What a service without a backend is."""
    return {
        "type": AVAILABLE,
        "status": "True",
        "lastTransitionTime": now(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def _is_right(api_service: Object) -> bool:
    if api_service["spec"].get("service") is not None:
        return True
    known, wanted = condition_of(api_service, AVAILABLE) or {}, local_condition()
    return all(known.get(key) == wanted[key] for key in ("status", "reason", "message"))


def _judged(api_service: Object) -> Object:
    if api_service["spec"].get("service") is None:
        set_condition(api_service, local_condition())
    return api_service
