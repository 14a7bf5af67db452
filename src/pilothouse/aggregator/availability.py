"""Whether the services behind APIServices can be there at all, told in the condition ``Available``.

An APIService that names a service is judged whenever it, that service or the service's endpoint slices change:

    no such service → no such port → no endpoint slices → no ready address behind the port

The first that holds is the reason. Services of other types than ClusterIP are not judged by ports and endpoints. What
passes all of these is asked for its discovery document, several times at once, since it may have several endpoints; one
good answer is enough. That is done again every half a minute, and sooner after a failure: networks break silently.
Services and slices are followed only in namespaces that APIServices name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

from pilothouse.aggregator.metrics import AvailabilityMetrics
from pilothouse.aggregator.remote import AVAILABLE, RemoteApi, read_remote
from pilothouse.controllers.own_objects import condition_of, existing, set_condition, update_status
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import now
from pilothouse.net.dialing import OutgoingError
from pilothouse.registry.store.store import Store

PASSED: Final = ("Passed", "all checks passed")
RECHECK_SECONDS: Final = 30.0
_ATTEMPTS: Final = 5
Probe = Callable[[RemoteApi], Awaitable[None]]
"""Asks a server for its discovery document; raises OutgoingError."""
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_BY_SERVICE: Final = "slices-by-service"


class Unavailability(NamedTuple):
    """Why a service is unavailable."""

    reason: str
    message: str


def judge(reference: Object, service: Object | None, slices: Iterable[Object]) -> Unavailability | None:
    """What is wrong with the service that an APIService names; None where nothing is known to be."""
    name, port = reference["name"], reference.get("port", 443)
    there = f"service/{name} in {quote(reference['namespace'])}"
    if service is None:
        return Unavailability("ServiceNotFound", f"{there} is not present")
    spec = service["spec"]
    if spec.get("type") != "ClusterIP":
        return None
    found = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
    if found is None:
        return Unavailability("ServicePortError", f"{there} is not listening on port {port}")
    port_name, slices = found.get("name", ""), list(slices)
    if not slices:
        return Unavailability("EndpointsNotFound", f"cannot find endpointslices for {there}")
    if not any(_is_ready(each, port_name) for each in slices):
        why = f"endpointslices for {there} have no addresses with port name {quote(port_name)}"
        return Unavailability("MissingEndpoints", why)
    return None


def _is_ready(endpoint_slice: Object, port_name: str) -> bool:
    endpoints = endpoint_slice.get("endpoints") or ()
    if all((each.get("conditions") or {}).get("ready") is False for each in endpoints):
        return False
    ports = endpoint_slice.get("ports") or ()
    return any(each.get("name") == port_name and each.get("port") is not None for each in ports)


class RemoteAvailability:
    """Keeps the condition of APIServices with a service right."""

    def __init__(
        self,
        api_services: Store,
        informers: InformerFactory,
        probe: Probe | None = None,
        metrics: AvailabilityMetrics | None = None,
    ) -> None:
        self._api_services, self._informers, self._probe = api_services, informers, probe
        self._metrics = AvailabilityMetrics(informers) if metrics is None else metrics
        self._names: dict[tuple[str, str], set[str]] = {}
        """The APIServices that name a service, by its namespace and name."""
        self._services: dict[str, Informer] = {}
        self._slices: dict[str, Informer] = {}
        """Both by namespace."""
        self.controller: Controller[str] = Controller("APIService availability", self.reconcile, workers=2)
        self._informer = informers.of("apiregistration.k8s.io", "v1", "apiservices")
        self._informer.add_handler(self._came, lambda old, new: self._came(new), self._went, name="availability")

    async def start(self, supervisor: Supervisor) -> None:
        """Judge what there is, then go on."""
        self.controller.start(supervisor)

    def _came(self, api_service: Object) -> None:
        name = api_service["metadata"]["name"]
        self._forget(name)
        reference = api_service["spec"].get("service")
        if reference is None:
            return
        self._names.setdefault((reference["namespace"], reference["name"]), set()).add(name)
        self._follow(reference["namespace"])
        self.controller.queue.add(name)

    def _went(self, api_service: Object) -> None:
        self._forget(api_service["metadata"]["name"])

    def _forget(self, name: str) -> None:
        for where in [where for where, names in self._names.items() if name in names]:
            self._names[where].discard(name)
            if not self._names[where]:
                del self._names[where]

    def _follow(self, namespace: str) -> None:
        if namespace in self._services:
            return
        services = self._services[namespace] = self._informers.of("", "v1", "services", namespace)
        slices = self._slices[namespace] = self._informers.of("discovery.k8s.io", "v1", "endpointslices", namespace)
        slices.add_index(_BY_SERVICE, lambda each: [_service_of(each)])
        for informer, name_of in ((services, _name_of), (slices, _service_of)):
            self._hear(informer, namespace, name_of)

    def _hear(self, informer: Informer, namespace: str, name_of: Callable[[Object], str]) -> None:
        def changed(obj: Object) -> None:
            self._changed(namespace, name_of(obj))

        informer.add_handler(changed, lambda old, new: changed(new), changed, name="availability")

    def _changed(self, namespace: str, service: str) -> None:
        for name in self._names.get((namespace, service), ()):
            self.controller.queue.add(name)

    async def reconcile(self, name: str) -> float | None:
        """Judge one APIService and write the condition where it changed."""
        stored = await existing(self._api_services, "", name)
        remote = None if stored is None else read_remote(stored)
        if stored is None or remote is None:
            return None
        error = await self._judge(stored["spec"]["service"], remote)
        if error is None and self._probe is None:
            return None
        verdict = ("True", *PASSED) if error is None else ("False", *error)
        known = condition_of(stored, AVAILABLE) or {}
        if (known.get("status"), known.get("reason"), known.get("message")) != verdict:
            await self._write(name, *verdict)
            if known.get("status") == "True" and error is not None:
                self._metrics.count_unavailable(name, error.reason)
        if error is not None and error.reason == "FailedDiscoveryCheck":
            raise OutgoingError(error.message)
        return RECHECK_SECONDS

    async def _judge(self, reference: Object, remote: RemoteApi) -> Unavailability | None:
        namespace = remote.namespace
        self._follow(namespace)
        services, slices = self._services[namespace], self._slices[namespace]
        await services.wait_synced()
        await slices.wait_synced()
        service = services.lister.get(namespace, remote.service)
        error = judge(reference, service, slices.lister.by_index(_BY_SERVICE, remote.service))
        if error is None and self._probe is not None:
            return await ask(self._probe, remote)
        return error

    async def _write(self, name: str, status: str, reason: str, message: str) -> None:
        def change(obj: Object) -> Object:
            set_condition(obj, _condition(status, reason, message, condition_of(obj, AVAILABLE)))
            return obj

        await update_status(self._api_services, "", name, change)


async def ask(probe: Probe, remote: RemoteApi) -> Unavailability | None:
    """Several questions at once; the first good answer is enough."""
    tasks = [asyncio.ensure_future(probe(remote)) for _ in range(_ATTEMPTS)]
    last = ""
    try:
        for answered in asyncio.as_completed(tasks):
            try:
                await answered
            except OutgoingError as error:
                last = str(error)
            else:
                return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return Unavailability("FailedDiscoveryCheck", last)


def _name_of(service: Object) -> str:
    return str(service["metadata"]["name"])


def _service_of(endpoint_slice: Object) -> str:
    return str((endpoint_slice["metadata"].get("labels") or {}).get(_SERVICE_NAME, ""))


def _condition(status: str, reason: str, message: str, known: Object | None) -> Object:
    """The condition; the time is that of the change from available to not, or back."""
    since = known["lastTransitionTime"] if known and known.get("status") == status else now()
    return {
        "type": AVAILABLE,
        "status": status,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
