"""Extended resources that devices stand behind: a pod asks for them by number, and gets a claim that it never named.

A device class gives them their name, or has one from its own (``deviceclass.resource.kubernetes.io/<class>``). On nodes
that have the resource from a device plugin the class does not matter; on all others the scheduler makes one claim for
all that the pod wants. Each container has requests of its own in it, but for init containers: these may use what
containers after them will have, and want only what that does not cover, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pilothouse.controllers.runtime.owners import owner_reference
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import DeviceView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
NOT_STORED: Final = "<extended-resources>"
"""The name of a claim that is only planned; no object can have it."""
_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


def extended_names(pod: PodInfo) -> list[str]:
    """The extended resources that the pod asks for."""
    return [name for name, amount in pod.requests.items() if amount > 0 and _is_extended(name)]


def _is_extended(name: str) -> bool:
    if name.startswith(_CLASS_PREFIX):
        return True
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def backing_class(name: str, devices: DeviceView) -> Object | None:
    """The class whose devices stand behind a resource: of several that name it the newest."""
    if name.startswith(_CLASS_PREFIX):
        return devices.device_class("", name.removeprefix(_CLASS_PREFIX))
    found = [each for each in devices.device_classes("") if each["spec"].get("extendedResourceName") == name]
    found.sort(key=lambda each: str(each["metadata"]["name"]))
    return max(found, key=lambda each: str(each["metadata"].get("creationTimestamp")), default=None)


def backed_names(pod: PodInfo, devices: DeviceView) -> dict[str, str]:
    """Those resources of the pod that devices stand behind, with the classes of these."""
    found = ((name, backing_class(name, devices)) for name in extended_names(pod))
    return {name: str(made["metadata"]["name"]) for name, made in found if made is not None}


class ExtendedClaim(NamedTuple):
    """The claim for what a pod needs of a node's devices, and which container uses which request of it."""

    claim: Object
    mappings: list[Object]


class ExtendedPlan:
    """The extended resources of one pod that devices stand behind, as classes are now."""

    def __init__(self, pod: PodInfo, devices: DeviceView) -> None:
        self._pod, self._classes = pod, backed_names(pod, devices)
        self._made: dict[tuple[str, ...], ExtendedClaim] = {}
        self.stale = None if not self._classes else _left_over(pod, devices)
        """A claim of an earlier attempt: it has to go first."""

    def claim_on(self, info: NodeInfo) -> ExtendedClaim | None:
        """What the pod would claim on the node; nothing where plug-ins provide all of it."""
        names = tuple(name for name in sorted(self._classes) if not info.allocatable.get(name))
        if not names:
            return None
        made = self._made.get(names)
        if made is None:
            made = self._made[names] = self._make(names)
        return made

    def __bool__(self) -> bool:
        return bool(self._classes)

    def _make(self, names: Sequence[str]) -> ExtendedClaim:
        pod = self._pod
        requests, mappings = requests_for(pod.spec, {name: self._classes[name] for name in names})
        metadata = {
            "name": NOT_STORED,
            "namespace": pod.namespace,
            "uid": f"{pod.uid}/{NOT_STORED}",
            "generateName": f"{pod.name}-extended-resources-",
            "annotations": {ANNOTATION: "true"},
            "ownerReferences": [{**owner_reference(pod.pod, "Pod", "v1"), "controller": True}],
        }
        return ExtendedClaim({"metadata": metadata, "spec": {"devices": {"requests": requests}}}, mappings)


def _left_over(pod: PodInfo, devices: DeviceView) -> Object | None:
    for claim in devices.claims_of_owner(pod.uid):
        if (claim["metadata"].get("annotations") or {}).get(ANNOTATION) == "true":
            return claim
    return None


def to_store(claim: Object) -> Object:
    """A planned claim as it is sent to the server, which gives it name and uid."""
    metadata = {name: value for name, value in claim["metadata"].items() if name not in ("name", "uid")}
    return {"metadata": metadata, "spec": claim["spec"]}


# Requests


def requests_for(spec: Object, classes: Mapping[str, str]) -> tuple[list[Object], list[Object]]:
    """Device requests for resources with their classes, and which container uses which of them."""
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    first_main = len(containers) - len(spec["containers"])
    staying = [
        index for index, each in enumerate(containers) if index >= first_main or each.get("restartPolicy") == "Always"
    ]
    requests: list[Object] = []
    mappings: list[Object] = []
    for resource in sorted(classes):
        found = _Resource(resource, classes[resource], containers)
        kept = {index: made for index in staying if (made := found.request(index)) is not None}
        passing = [index for index in range(first_main) if index not in staying]
        requests += [*found.shared_by(passing, kept), *kept.values()]
        mappings += found.mappings
    return sorted(requests, key=lambda each: str(each["name"])), mappings


class _Resource:
    """One resource: what is requested for it, and by whom it is used."""

    def __init__(self, name: str, device_class: str, containers: Sequence[Object]) -> None:
        self._name, self._class, self._containers = name, device_class, containers
        self.mappings: list[Object] = []

    def request(self, index: int, covered: int = 0) -> Object | None:
        """The request of a container for what it wants beyond what is covered; None where that is nothing."""
        wanted = self._wanted(index) - covered
        if wanted <= 0:
            return None
        name = f"container-{index}-request-{sorted(self._stated(index)).index(self._name)}"
        self._map(index, name)
        exactly = {"deviceClassName": self._class, "allocationMode": "ExactCount", "count": wanted}
        return {"name": name, "exactly": exactly}

    def shared_by(self, passing: Iterable[int], kept: Mapping[int, Object]) -> list[Object]:
        """One request, the largest, for all init containers: none runs while another does."""
        own: dict[str, Object] = {}
        for index in passing:
            made = self.request(index, self._reuse(index, kept))
            if made is not None:
                own[made["name"]] = made
        if not own:
            return []
        largest = max(own.values(), key=lambda each: int(each["exactly"]["count"]))
        for mapping in self.mappings:
            if mapping["requestName"] in own:
                mapping["requestName"] = largest["name"]
        return [largest]

    def _reuse(self, index: int, kept: Mapping[int, Object]) -> int:
        """How many devices an init container may use that containers after it will have."""
        covered, wanted = 0, self._wanted(index)
        for later, made in kept.items():
            if later >= index and covered < wanted:
                covered += made["exactly"]["count"]
                self._map(index, made["name"])
        return covered

    def _stated(self, index: int) -> Mapping[str, str]:
        stated: Mapping[str, str] = (self._containers[index].get("resources") or {}).get("requests") or {}
        return stated

    def _wanted(self, index: int) -> int:
        return quantity.parse(str(self._stated(index).get(self._name, 0))).value()

    def _map(self, index: int, request: str) -> None:
        name = self._containers[index]["name"]
        self.mappings.append({"containerName": name, "resourceName": self._name, "requestName": request})
