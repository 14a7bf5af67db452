"""EndpointSlices of services with selectors: all their pods, ready or not, in slices of a hundred."""

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
from pilothouse.controllers.endpoints.packing import Endpoint, Plan, pack, ports_key, weight_of_slices
from pilothouse.controllers.endpoints.triggers import follow_services
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import BY_LABEL, Key
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.pacing import Pacer
from pilothouse.controllers.runtime.pod_control import is_namespace_terminating
from pilothouse.controllers.runtime.pods import is_ready
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed

_ACCOUNT: Final = "endpointslice-controller"
MANAGER: Final = "endpointslice-controller.k8s.io"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME: Final = "kubernetes.io/service-name"
_ZONE: Final = "topology.kubernetes.io/zone"
BY_SERVICE: Final = "slices-by-service"


def start(context: ControllerContext) -> None:
    """Start the endpoint slice controller."""
    SliceController(context).controller.start(context.supervisor)


def service_of(obj: Object) -> list[str]:
    """The service that a slice is of, for an index."""
    metadata = obj["metadata"]
    name = (metadata.get("labels") or {}).get(SERVICE_NAME)
    return [f"{metadata['namespace']}/{name}"] if name else []


class SliceController:
    """Writes the slices of each service with a selector. Keys are services."""

    def __init__(self, context: ControllerContext) -> None:
        informers = context.informers
        self._services = informers.of("", "v1", "services")
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_index(BY_LABEL)
        self._nodes = informers.of("", "v1", "nodes")
        self._slices = informers.of("discovery.k8s.io", "v1", "endpointslices")
        self._slices.add_index(BY_SERVICE, service_of)
        self._client = context.client(_ACCOUNT).of("discovery.k8s.io", "v1", "endpointslices")
        self._events = context.recorder(_ACCOUNT, _ACCOUNT)
        self.controller: Controller[Key] = Controller(
            _ACCOUNT,
            self._reconcile,
            workers=5,
            wait_for=[self._services, self._pods, self._nodes, self._slices],
            clock=context.clock,
        )
        self._pacer = Pacer(self.controller.queue, context.clock)
        self._sizes: dict[Key, int] = {}
        """How many pods each service had when it was last looked at."""
        follow_services(self._services, self._pods, self._look_soon, _ACCOUNT)
        self._slices.add_handler(self._slice_seen, self._slice_changed, self._slice_seen, name=_ACCOUNT)

    def _slice_changed(self, old: Object, new: Object) -> None:
        """Others may have changed what is ours; what we wrote ourselves needs one look more and no writing.

        That is true of new slices too: one whose creation was not answered has been made a second time.
        """
        self._slice_seen(new)

    def _slice_seen(self, obj: Object) -> None:
        own = obj["metadata"].get("labels") or {}
        if own.get(MANAGED_BY) == MANAGER and own.get(SERVICE_NAME):
            self._look_soon((obj["metadata"]["namespace"], own[SERVICE_NAME]))

    def _look_soon(self, key: Key) -> None:
        self._pacer.add(key, self._sizes.get(key, 0))

    async def _reconcile(self, key: Key) -> None:
        service = self._services.lister.get(*key)
        self._sizes.pop(key, None)
        if service is None or service["metadata"].get("deletionTimestamp"):
            return  # slices belong to their service and go with it
        if not service["spec"].get("selector") or service["spec"].get("type") == "ExternalName":
            return
        pods = self._pods.lister.list(key[0], self._services.lister.selector_of(service))
        self._sizes[key] = len(pods)
        wanted = await weighed(weight_of(service, pods), self._wanted, service, pods)
        known = [
            each
            for each in self._slices.lister.by_index(BY_SERVICE, f"{key[0]}/{key[1]}")
            if (each["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER
        ]
        try:
            plan = await weighed(weight_of(service, pods) + weight_of_slices(known), self._plan, service, wanted, known)
            await write_plan(self._client, plan)
        except errors.StatusError as error:
            if is_namespace_terminating(error):
                return
            text = f"Error updating Endpoint Slices for Service {key[0]}/{key[1]}: {error.message}"
            self._events.event(service, "Warning", "FailedToUpdateEndpointSlices", text)
            raise

    def _wanted(self, service: Object, pods: Iterable[Object]) -> dict[str, tuple[str, list[Object], list[Endpoint]]]:
        """Endpoints by family and ports; each family has at least an empty slice."""
        found: dict[str, tuple[str, list[Object], list[Endpoint]]] = {}
        pods = [pod for pod in pods if belongs(pod, include_terminating=True)]
        targets, shown = TargetPorts(service), dict[tuple[str, Numbers], tuple[str, list[Object]]]()
        for family in families_of(service):
            empty = True
            for pod in pods:
                address = address_of(pod, family)
                if address is None:
                    continue
                numbers = targets.of(pod)
                if (family, numbers) not in shown:
                    ports = _ports(targets.ports, numbers)
                    shown[family, numbers] = ports_key(family, ports), ports
                key, ports = shown[family, numbers]
                found.setdefault(key, (family, ports, []))[2].append(self._endpoint(service, pod, address))
                empty = False
            if empty:
                found.setdefault(ports_key(family, None), (family, [], []))
        return found

    def _endpoint(self, service: Object, pod: Object, address: str) -> Endpoint:
        serving, terminating = is_ready(pod), bool(pod["metadata"].get("deletionTimestamp"))
        ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
        endpoint: Endpoint = {
            "addresses": [address],
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
            "targetRef": target_of(pod),
        }
        node_name = pod["spec"].get("nodeName")
        if node_name:
            endpoint["nodeName"] = node_name
            node = self._nodes.lister.get("", node_name)
            zone = None if node is None else (node["metadata"].get("labels") or {}).get(_ZONE)
            if zone:
                endpoint["zone"] = zone
        if sets_hostname(pod, service):
            endpoint["hostname"] = pod["spec"]["hostname"]
        return endpoint

    def _plan(
        self, service: Object, wanted: dict[str, tuple[str, list[Object], list[Endpoint]]], known: list[Object]
    ) -> Plan:
        own_labels = slice_labels(service, MANAGER)

        def make(key: str, endpoints: list[Endpoint]) -> Object:
            family, ports, _ = wanted[key]
            return new_slice(service, family, ports, endpoints, own_labels)

        def is_labelled(obj: Object) -> bool:
            return bool((obj["metadata"].get("labels") or {}) == own_labels)

        def relabel(obj: Object) -> Object:
            return {**obj, "metadata": {**obj["metadata"], "labels": own_labels}}

        plan = pack({key: entry[2] for key, entry in wanted.items()}, known, make, is_labelled, relabel)
        for key, (_, _, endpoints) in wanted.items():
            if not endpoints:
                _keep_placeholder(plan, key, make)
        return plan


def _keep_placeholder(plan: Plan, key: str, make: Any) -> None:
    """A service without endpoints has one empty slice: one that would go is emptied instead, or a new one made."""
    for obj in plan.delete:
        if ports_key(obj["addressType"], obj.get("ports")) == key:
            plan.delete.remove(obj)
            if obj.get("endpoints"):
                plan.update.append({**obj, "endpoints": []})
            return
    plan.create.append(make(key, []))


def _ports(given: Iterable[Object], numbers: Numbers) -> list[Object]:
    ports: list[Object] = []
    for port, number in zip(given, numbers, strict=True):
        if number is not None:
            shown = {"name": port.get("name") or "", "port": number, "protocol": port.get("protocol") or "TCP"}
            if port.get("appProtocol"):
                shown["appProtocol"] = port["appProtocol"]
            ports.append(shown)
    return ports


def slice_labels(service: Object, manager: str) -> dict[str, str]:
    """The labels of a slice: those of its service, whose it is, and who keeps it."""
    reserved = (HEADLESS, SERVICE_NAME, MANAGED_BY)
    given: dict[str, str] = service["metadata"].get("labels") or {}
    own = {name: value for name, value in given.items() if name not in reserved}
    if is_headless(service):
        own[HEADLESS] = ""
    return {**own, SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: manager}


def new_slice(
    service: Object, family: str, ports: list[Object], endpoints: list[Endpoint], own_labels: dict[str, str]
) -> Object:
    """A slice that belongs to a service."""
    metadata = service["metadata"]
    return {
        "metadata": {
            "generateName": f"{metadata['name']}-",
            "namespace": metadata["namespace"],
            "labels": own_labels,
            "ownerReferences": [controller_reference(service, "Service", "v1")],
        },
        "addressType": family,
        "ports": ports,
        "endpoints": endpoints,
    }


async def write_plan(client: ResourceClient, plan: Plan) -> None:
    """Write what a plan says; a slice that has gone meanwhile is as good as deleted."""
    for each in plan.create:
        await client.create(each)
    for each in plan.update:
        await client.update(each)
    for each in plan.delete:
        try:
            await client.delete(each["metadata"]["namespace"], each["metadata"]["name"])
        except errors.NotFound:
            continue
