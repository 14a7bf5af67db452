"""Endpoints of services with selectors: ready and unready addresses, grouped by the ports they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pilothouse.controllers.endpoints.members import (
    HEADLESS,
    Numbers,
    TargetPorts,
    address_of,
    belongs,
    families_of,
    is_headless,
    sets_hostname,
    target_of,
    weight_of,
)
from pilothouse.controllers.endpoints.triggers import follow_services
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import BY_LABEL, Key
from pilothouse.controllers.runtime.pacing import Pacer
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.controllers.runtime.pods import is_ready
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_NAME: Final = "endpoint-controller"
_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MOST: Final = 1000
Port = tuple[str, int, str, str]


def start(context: ControllerContext) -> None:
    """Start the endpoints controller."""
    EndpointsController(context).controller.start(context.supervisor)


class EndpointsController:
    """Writes one Endpoints for each service with a selector. Keys are services."""

    def __init__(self, context: ControllerContext) -> None:
        informers, client = context.informers, context.client(_NAME)
        self._services = informers.of("", "v1", "services")
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_index(BY_LABEL)
        self._endpoints = informers.of("", "v1", "endpoints")
        self._client = client.of("", "v1", "endpoints")
        self._events = context.recorder(_NAME, _NAME)
        self.controller: Controller[Key] = Controller(
            "endpoints-controller",
            self._reconcile,
            workers=5,
            wait_for=[self._services, self._pods, self._endpoints],
            clock=context.clock,
        )
        self._pacer = Pacer(self.controller.queue, context.clock)
        self._sizes: dict[Key, int] = {}
        """How many pods each service had when it was last looked at."""
        follow_services(self._services, self._pods, self._look_soon, _NAME)

    def _look_soon(self, key: Key) -> None:
        self._pacer.add(key, self._sizes.get(key, 0))

    async def _reconcile(self, key: Key) -> None:
        service = self._services.lister.get(*key)
        self._sizes.pop(key, None)
        if service is None:
            known = self._endpoints.lister.get(*key)
            if known is not None and _MANAGED_BY in (known["metadata"].get("labels") or {}):
                await self._delete(key)
            return
        if not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
            return
        pods = self._pods.lister.list(key[0], self._services.lister.selector_of(service))
        self._sizes[key] = len(pods)
        wanted = await weighed(weight_of(service, pods), make_endpoints, service, pods)
        await self._write(self._endpoints.lister.get(*key), wanted)

    async def _delete(self, key: Key) -> None:
        try:
            await self._client.delete(*key)
        except errors.NotFound:
            return

    async def _write(self, known: Object | None, wanted: Object) -> None:
        try:
            if known is None:
                await self._client.create(wanted)
            elif _differs(known, wanted):
                metadata = {**known["metadata"], "labels": wanted["metadata"]["labels"]}
                annotations = {**(known["metadata"].get("annotations") or {})}
                annotations.pop(_OVER_CAPACITY, None)
                metadata["annotations"] = annotations | wanted["metadata"]["annotations"]
                await self._client.update({**known, "metadata": metadata, "subsets": wanted["subsets"]})
        except errors.AlreadyExists:
            raise  # our view is old: again, when it is newer
        except errors.StatusError as error:
            if is_namespace_terminating(error) or isinstance(error, errors.NotFound):
                return
            self._tell(known, wanted, error)
            raise

    def _tell(self, known: Object | None, wanted: Object, error: errors.StatusError) -> None:
        where = f"{wanted['metadata']['namespace']}/{wanted['metadata']['name']}"
        if known is None:
            reason, text = "FailedToCreateEndpoint", f"Failed to create endpoint for service {where}: {error.message}"
        else:
            reason, text = "FailedToUpdateEndpoint", f"Failed to update endpoint {where}: {error.message}"
        self._events.event(known or wanted, "Warning", reason, text, kind="Endpoints", api_version="v1")


def _differs(known: Object, wanted: Object) -> bool:
    before, after = known["metadata"], wanted["metadata"]
    over = (before.get("annotations") or {}).get(_OVER_CAPACITY)
    return bool(
        (known.get("subsets") or []) != wanted["subsets"]
        or (before.get("labels") or {}) != after["labels"]
        or over != after["annotations"].get(_OVER_CAPACITY)
    )


def make_endpoints(service: Object, pods: Iterable[Object]) -> Object:
    """The Endpoints of a service with these pods."""
    metadata = service["metadata"]
    family = families_of(service)[0]
    everything = bool(service["spec"].get("publishNotReadyAddresses"))
    targets, common = TargetPorts(service), dict[Numbers, frozenset[Port]]()
    found: dict[tuple[str, str], tuple[bool, dict[str, Any], frozenset[Port]]] = {}
    for pod in pods:
        address = address_of(pod, family) if belongs(pod, include_terminating=everything) else None
        if address is None:
            continue
        shown: dict[str, Any] = {"ip": address, "targetRef": target_of(pod)}
        if pod["spec"].get("nodeName"):
            shown["nodeName"] = pod["spec"]["nodeName"]
        if sets_hostname(pod, service):
            shown["hostname"] = pod["spec"]["hostname"]
        numbers = targets.of(pod)
        if numbers not in common:
            common[numbers] = _ports(targets.ports, numbers)
        ports = common[numbers]
        if ports or (is_headless(service) and not service["spec"].get("ports")):
            ready = everything or is_ready(pod)
            found[(address, pod["metadata"]["uid"])] = (ready, shown, ports)
    own = {**(metadata.get("labels") or {}), _MANAGED_BY: _NAME}
    own.pop(HEADLESS, None)
    if is_headless(service):
        own[HEADLESS] = ""
    chosen = sorted(found.values(), key=lambda each: not each[0])[:_MOST]
    annotations = {_OVER_CAPACITY: "truncated"} if len(found) > _MOST else {}
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": own,
            "annotations": annotations,
        },
        "subsets": _subsets(chosen),
    }


def _ports(given: Iterable[Object], numbers: Numbers) -> frozenset[Port]:
    return frozenset(
        (port.get("name") or "", number, port.get("protocol") or "TCP", port.get("appProtocol") or "")
        for port, number in zip(given, numbers, strict=True)
        if number is not None
    )


def _subsets(members: Iterable[tuple[bool, dict[str, Any], frozenset[Port]]]) -> list[dict[str, Any]]:
    """Addresses with the same ports together, in a stable order."""
    grouped: dict[frozenset[Port], dict[str, list[dict[str, Any]]]] = {}
    for ready, address, ports in members:
        group = grouped.setdefault(ports, {})
        group.setdefault("addresses" if ready else "notReadyAddresses", []).append(address)
    subsets = []
    for common, group in sorted(grouped.items(), key=lambda each: sorted(each[0])):
        subset: dict[str, Any] = {
            name: sorted(group[name], key=lambda each: (each["ip"], each["targetRef"]["uid"]))
            for name in ("addresses", "notReadyAddresses")
            if name in group
        }
        if common:
            subset["ports"] = [_show_port(port) for port in sorted(common)]
        subsets.append(subset)
    return subsets


def _show_port(port: Port) -> dict[str, Any]:
    name, number, protocol, application = port
    shown: dict[str, Any] = {"name": name} if name else {}
    shown |= {"port": number, "protocol": protocol}
    return {**shown, "appProtocol": application} if application else shown
