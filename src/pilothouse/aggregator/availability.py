"""Whether the services behind APIServices can be there at all, told in the condition ``Available``.

An APIService that names a service is judged whenever it, that service or the service's endpoint slices change:

    no such service → no such port → no endpoint slices → no ready address behind the port

The first that holds is the reason. Services of other types than ClusterIP are not judged by ports and endpoints. What
passes all of these is not reported on, because only asking the service itself could tell. Services and slices are
followed only in namespaces that APIServices name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from pilothouse.controllers.following import Follower
from pilothouse.controllers.own_objects import condition_of, existing, set_condition, update_status
from pilothouse.controllers.running import Controller
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.times import now
from pilothouse.registry.store.store import Store

AVAILABLE: Final = "Available"
_SERVICE_NAME: Final = "kubernetes.io/service-name"

Object = dict[str, Any]


class Fault(NamedTuple):
    """Why a service is unavailable."""

    reason: str
    message: str


def judge(reference: Object, service: Object | None, slices: Iterable[Object]) -> Fault | None:
    """What is wrong with the service that an APIService names; None where nothing is known to be."""
    name, port = reference["name"], reference.get("port", 443)
    there = f"service/{name} in {quote(reference['namespace'])}"
    if service is None:
        return Fault("ServiceNotFound", f"{there} is not present")
    spec = service["spec"]
    if spec.get("type") != "ClusterIP":
        return None
    found = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
    if found is None:
        return Fault("ServicePortError", f"{there} is not listening on port {port}")
    port_name, slices = found.get("name", ""), list(slices)
    if not slices:
        return Fault("EndpointsNotFound", f"cannot find endpointslices for {there}")
    if not any(_is_ready(each, port_name) for each in slices):
        why = f"endpointslices for {there} have no addresses with port name {quote(port_name)}"
        return Fault("MissingEndpoints", why)
    return None


def _is_ready(endpoint_slice: Object, port_name: str) -> bool:
    endpoints = endpoint_slice.get("endpoints") or ()
    if all((each.get("conditions") or {}).get("ready") is False for each in endpoints):
        return False
    ports = endpoint_slice.get("ports") or ()
    return any(each.get("name") == port_name and each.get("port") is not None for each in ports)


class RemoteAvailability:
    """Keeps the condition of APIServices with a service right."""

    def __init__(self, api_services: Store, services: Store, endpoint_slices: Store) -> None:
        self._api_services, self._services, self._slices = api_services, services, endpoint_slices
        self._names: dict[tuple[str, str], set[str]] = {}
        """The APIServices that name a service, by its namespace and name."""
        self._followers: dict[str, tuple[Follower, Follower]] = {}
        self.controller: Controller[str] = Controller("APIService availability", self.reconcile, workers=2)
        self._follower = Follower(api_services, self._came, self._went)

    async def start(self) -> None:
        """Judge what there is, then go on."""
        self.controller.start()
        self._follower.start()

    async def stop(self) -> None:
        """Stop following."""
        followers = [self._follower, *(each for pair in self._followers.values() for each in pair)]
        await asyncio.gather(*(follower.stop() for follower in followers))
        await self.controller.stop()

    def _came(self, api_service: Object) -> None:
        name = api_service["metadata"]["name"]
        self._forget(name)
        reference = api_service["spec"].get("service")
        if reference is None:
            return
        self._names.setdefault((reference["namespace"], reference["name"]), set()).add(name)
        self._follow(reference["namespace"])
        self.controller.queue.add(name)

    def _went(self, _namespace: str, name: str) -> None:
        self._forget(name)

    def _forget(self, name: str) -> None:
        for where in [where for where, names in self._names.items() if name in names]:
            self._names[where].discard(name)
            if not self._names[where]:
                del self._names[where]

    def _follow(self, namespace: str) -> None:
        if namespace in self._followers:
            return
        services = Follower(
            self._services,
            lambda service: self._changed(namespace, service["metadata"]["name"]),
            self._changed,
            f"{self._services.prefix}{namespace}/",
        )
        slices = Follower(
            self._slices,
            lambda each: self._changed(namespace, (each["metadata"].get("labels") or {}).get(_SERVICE_NAME, "")),
            lambda _, name: self._changed_all(namespace),
            f"{self._slices.prefix}{namespace}/",
        )
        self._followers[namespace] = services, slices
        services.start()
        slices.start()

    def _changed(self, namespace: str, service: str) -> None:
        for name in self._names.get((namespace, service), ()):
            self.controller.queue.add(name)

    def _changed_all(self, namespace: str) -> None:
        """A slice that went does not say any more whose it was."""
        for (where, service), _ in list(self._names.items()):
            if where == namespace:
                self._changed(namespace, service)

    async def reconcile(self, name: str) -> None:
        """Judge one APIService and write the condition where it changed."""
        stored = await existing(self._api_services, "", name)
        reference = None if stored is None else stored["spec"].get("service")
        if stored is None or reference is None:
            return
        namespace = reference["namespace"]
        service = await existing(self._services, namespace, reference["name"])
        fault = judge(reference, service, await self._slices_of(namespace, reference["name"]))
        if fault is None:
            return
        known = condition_of(stored, AVAILABLE) or {}
        if (known.get("status"), known.get("reason"), known.get("message")) == ("False", *fault):
            return

        def change(obj: Object) -> Object:
            set_condition(obj, _condition(fault, condition_of(obj, AVAILABLE)))
            return obj

        await update_status(self._api_services, "", name, change)

    async def _slices_of(self, namespace: str, service: str) -> list[Object]:
        cache = self._slices.cache
        await cache.wait_ready()
        entries = cache.entries(f"{self._slices.prefix}{namespace}/")
        return [self._slices.decode(entry) for entry in entries if entry.labels.get(_SERVICE_NAME) == service]


def _condition(fault: Fault, known: Object | None) -> Object:
    """The condition; the time is that of the change from available to not."""
    since = known["lastTransitionTime"] if known and known.get("status") == "False" else now()
    return {
        "type": AVAILABLE,
        "status": "False",
        "lastTransitionTime": since,
        "reason": fault.reason,
        "message": fault.message,
    }
