"""Slices for Endpoints that somebody wrote by hand, so that whoever reads slices sees them too."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.controllers.endpoints.members import family_of
from pilothouse.controllers.endpoints.packing import Endpoint, Plan, pack, ports_key, weight_of_slices
from pilothouse.controllers.endpoints.slices import (
    BY_SERVICE,
    MANAGED_BY,
    SERVICE_NAME,
    service_of,
    write_plan,
)
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_ACCOUNT: Final = "endpointslicemirroring-controller"
_NAME: Final = "endpointslice-mirroring-controller"
_MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_NOT_COPIED: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
)
_MOST: Final = 1000
_PART: Final = 50
"""What an address or a port takes of JSON."""


def start(context: ControllerContext) -> None:
    """Start the mirroring controller."""
    MirroringController(context).controller.start(context.supervisor)


class MirroringController:
    """Mirrors Endpoints whose service has no selector. Keys are Endpoints and services, which share a name."""

    def __init__(self, context: ControllerContext) -> None:
        informers = context.informers
        self._services = informers.of("", "v1", "services")
        self._endpoints = informers.of("", "v1", "endpoints")
        self._slices = informers.of("discovery.k8s.io", "v1", "endpointslices")
        self._slices.add_index(BY_SERVICE, service_of)
        self._client = context.client(_ACCOUNT).of("discovery.k8s.io", "v1", "endpointslices")
        self.controller: Controller[Key] = Controller(
            _NAME,
            self._reconcile,
            workers=5,
            wait_for=[self._services, self._endpoints, self._slices],
            clock=context.clock,
        )
        add = self.controller.queue.add
        for informer in (self._services, self._endpoints):
            informer.add_handler(
                lambda obj: add(key_of(obj)),
                lambda old, new: add(key_of(new)),
                lambda obj: add(key_of(obj)),
                name=_NAME,
            )
        # New slices too: one whose creation was not answered has been made a second time.
        self._slices.add_handler(self._seen, lambda old, new: self._seen(new), self._seen, name=_NAME)

    def _seen(self, obj: Object) -> None:
        own = obj["metadata"].get("labels") or {}
        if own.get(MANAGED_BY) == _MANAGER and own.get(SERVICE_NAME):
            self.controller.queue.add((obj["metadata"]["namespace"], own[SERVICE_NAME]))

    async def _reconcile(self, key: Key) -> None:
        endpoints, service = self._endpoints.lister.get(*key), self._services.lister.get(*key)
        known = [
            each
            for each in self._slices.lister.by_index(BY_SERVICE, f"{key[0]}/{key[1]}")
            if (each["metadata"].get("labels") or {}).get(MANAGED_BY) == _MANAGER
        ]
        mirrored = endpoints is not None and service is not None and _is_mirrored(endpoints, service)
        weight = weight_of_slices(known) + (_weight(endpoints) if endpoints is not None else 0)
        plan = await weighed(weight, _plan, endpoints, mirrored, known)
        try:
            await write_plan(self._client, plan)
        except errors.StatusError as error:
            if not is_namespace_terminating(error):
                raise


def _is_mirrored(endpoints: Object, service: Object) -> bool:
    metadata = endpoints["metadata"]
    if (metadata.get("labels") or {}).get(_SKIP) == "true" or _LEADER in (metadata.get("annotations") or {}):
        return False
    return not service["spec"].get("selector") and service["spec"].get("type") != "ExternalName"


def _plan(endpoints: Object | None, mirrored: bool, known: list[Object]) -> Plan:
    """What is to be written: nothing is wanted of Endpoints that are gone or not to be mirrored."""
    wanted = _wanted(endpoints) if mirrored and endpoints is not None else {}
    own_labels = _labels(endpoints) if endpoints is not None else {}

    def make(ports: str, members: list[Endpoint]) -> Object:
        assert endpoints is not None
        family, shown, _ = wanted[ports]
        return _new_slice(endpoints, family, shown, members, own_labels)

    return pack(
        {ports: entry[2] for ports, entry in wanted.items()},
        known,
        make,
        lambda obj: bool((obj["metadata"].get("labels") or {}) == own_labels),
        lambda obj: {**obj, "metadata": {**obj["metadata"], "labels": own_labels}},
    )


def _wanted(endpoints: Object) -> dict[str, tuple[str, list[Object], list[Endpoint]]]:
    found: dict[str, tuple[str, list[Object], list[Endpoint]]] = {}
    for subset in endpoints.get("subsets") or ():
        ports = [{"protocol": "TCP", "name": "", **port} for port in subset.get("ports") or ()]
        keys: dict[str, str] = {}
        for field, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in (subset.get(field) or ())[:_MOST]:
                family = family_of(address["ip"])
                if family not in keys:  # it has all ports in it, which may be as many as addresses
                    keys[family] = ports_key(family, ports)
                entry = found.setdefault(keys[family], (family, ports, []))
                entry[2].append(_endpoint(address, ready))
    return found


def _weight(endpoints: Object) -> int:
    """The bytes of usual JSON that are as much work."""
    parts = ("addresses", "notReadyAddresses", "ports")
    return _PART * sum(len(subset.get(part) or ()) for subset in endpoints.get("subsets") or () for part in parts)


def _endpoint(address: Object, ready: bool) -> Endpoint:
    endpoint: Endpoint = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
    for name in ("targetRef", "nodeName", "hostname"):
        if address.get(name):
            endpoint[name] = address[name]
    return endpoint


def _labels(endpoints: Object) -> dict[str, str]:
    metadata = endpoints["metadata"]
    return {**(metadata.get("labels") or {}), SERVICE_NAME: metadata["name"], MANAGED_BY: _MANAGER}


def _new_slice(
    endpoints: Object, family: str, ports: list[Object], members: list[Endpoint], own_labels: dict[str, str]
) -> Object:
    metadata = endpoints["metadata"]
    made: dict[str, Any] = {
        "generateName": f"{metadata['name']}-",
        "namespace": metadata["namespace"],
        "labels": own_labels,
        "ownerReferences": [controller_reference(endpoints, "Endpoints", "v1")],
    }
    annotations = metadata.get("annotations") or {}
    copied = {name: value for name, value in annotations.items() if name not in _NOT_COPIED}
    if copied:
        made["annotations"] = copied
    return {"metadata": made, "addressType": family, "ports": ports, "endpoints": members}
