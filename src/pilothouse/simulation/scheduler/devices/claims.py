"""The resource claims of a pod, and whether what they have, or could get, is to be had on a node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.controllers.runtime import pod_groups
from pilothouse.controllers.runtime.node_selection import matches_terms
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView, DeviceView
from pilothouse.simulation.scheduler.devices.allocator import Allocator, Choice
from pilothouse.simulation.scheduler.devices.extended import ExtendedPlan, extended_names
from pilothouse.simulation.scheduler.devices.pools import Inventory
from pilothouse.simulation.scheduler.filters.verdict import Unschedulable
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

MOST_CONSUMERS: Final = 256
_NOT_OWNER: Final = "Pod is not owner"


class ClaimMissing(Exception):
    """A claim of the pod is not there yet, or not any more; the message says which."""


class ClaimsUnschedulable(Unschedulable):
    """The pod's resource claims keep it from any node."""

    is_early = False


class BindingRefused(Exception):
    """A driver said that a device cannot be made ready; the message says why."""


def uses_devices(pod: PodInfo) -> bool:
    """Whether the pod has resource claims at all, or may get one for its extended resources."""
    return bool(pod.spec.get("resourceClaims") or extended_names(pod))


def claims_of(pod: PodInfo, devices: DeviceView) -> list[Object]:
    """The pod's claims as they were last written. Raises ClaimMissing."""
    return [claim for claim, _ in claims_with_entries(pod, devices)]


def claims_with_entries(pod: PodInfo, devices: DeviceView) -> list[tuple[Object, Object]]:
    """The pod's claims, each with the pod's entry that stands for it. Raises ClaimMissing."""
    return [(_claim(name, must_own, pod, devices), entry) for name, must_own, entry in _claim_names(pod)]


def _claim_names(pod: PodInfo) -> Iterable[tuple[str, bool, Object]]:
    made = {each["name"]: each.get("resourceClaimName") for each in pod.status.get("resourceClaimStatuses") or ()}
    for each in pod.spec.get("resourceClaims") or ():
        if "resourceClaimName" in each:
            yield each["resourceClaimName"], False, each
        elif each["name"] not in made:
            raise ClaimMissing(f'pod "{pod.namespace}/{pod.name}": ResourceClaim not created yet')
        elif made[each["name"]]:
            yield str(made[each["name"]]), True, each


def _claim(name: str, must_own: bool, pod: PodInfo, devices: DeviceView) -> Object:
    claim = devices.claim(pod.namespace, name)
    if claim is None:
        raise ClaimMissing(f'resourceclaim.resource.k8s.io "{name}" not found')
    if claim["metadata"].get("deletionTimestamp"):
        raise ClaimMissing(f'resourceclaim "{name}" is being deleted')
    if must_own and not pod_groups.is_made_for(claim, pod.pod):
        made_for = f"ResourceClaim {pod.namespace}/{name} was not created for Pod {pod.namespace}/{pod.name}"
        group = pod_groups.group_name(pod.pod)
        raise ClaimMissing(f"{made_for} ({f'neither Pod nor PodGroup {group} is the owner' if group else _NOT_OWNER})")
    return devices.ledger.newest(claim)


def allocation_in(claim: Object) -> Object | None:
    """What the claim has."""
    found: Object | None = (claim.get("status") or {}).get("allocation")
    return found


class DevicePlan:
    """What the claims of a pod have, and a search for what the others could get, as the cluster is now."""

    def __init__(self, claims: list[Object], extended: ExtendedPlan, cluster: ClusterView) -> None:
        self.claims, self.extended = claims, extended
        self.unallocated = [claim for claim in claims if allocation_in(claim) is None]
        self._devices = cluster.devices
        self._inventory: Inventory | None = None
        self._allocators: dict[int, Allocator] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the pod has nothing to do with devices after all."""
        return not self.claims and not self.extended

    def wanted(self, info: NodeInfo) -> list[Object]:
        """The claims that need devices if the pod is to come to the node."""
        made = self.extended.claim_on(info)
        return self.unallocated if made is None else [*self.unallocated, made.claim]

    def unavailable(self, info: NodeInfo) -> list[Object]:
        """Claims whose devices cannot be used on the node, or never got ready for it."""
        return [claim for claim in self.claims if not _is_available(claim, info)]

    def choose(self, info: NodeInfo) -> list[Choice] | None:
        """What each claim that is ``wanted`` would get on the node, None where they cannot all be met."""
        wanted = self.wanted(info)
        return self._allocator(wanted).choose(info) if wanted else []

    def _allocator(self, wanted: list[Object]) -> Allocator:
        """One allocator for all nodes on which the same is wanted: there are few ways in which nodes differ."""
        key = id(wanted[-1])
        if key not in self._allocators:
            devices = self._devices
            if self._inventory is None:
                self._inventory = Inventory(tainted_slices(devices.slices(""), devices.taint_rules("")))
            self._allocators[key] = Allocator(
                wanted, lambda name: devices.device_class("", name), self._inventory, devices.ledger
            )
        return self._allocators[key]


def plan_for(pod: PodInfo, cluster: ClusterView) -> DevicePlan:
    """The plan of a pod. Raises Unschedulable where no node can help."""
    try:
        claims = claims_of(pod, cluster.devices)
    except ClaimMissing as error:
        raise ClaimsUnschedulable(str(error)) from None
    for claim in claims:
        if allocation_in(claim) is None:
            _check_classes(claim, cluster.devices)
    return DevicePlan(claims, ExtendedPlan(pod, cluster.devices), cluster)


def _check_classes(claim: Object, devices: DeviceView) -> None:
    if devices.ledger.is_pending(claim["metadata"]["uid"]):
        name = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        raise ClaimsUnschedulable(f"resource claim {name} is in the process of being allocated")
    for stated in (claim["spec"].get("devices") or {}).get("requests") or ():
        parts = (
            [(stated["name"], stated["exactly"])]
            if "exactly" in stated
            else [(f"{stated['name']}/{each['name']}", each) for each in stated.get("firstAvailable") or ()]
        )
        for name, part in parts:
            if devices.device_class("", part["deviceClassName"]) is None:
                raise ClaimsUnschedulable(f"request {name}: device class {part['deviceClassName']} does not exist")


def _is_available(claim: Object, info: NodeInfo) -> bool:
    allocation = allocation_in(claim)
    if allocation is None:
        return True
    selector = allocation.get("nodeSelector")
    if selector is not None and not matches_terms(selector, info):
        return False
    try:
        is_ready(claim)
    except BindingRefused:
        return False
    return True


def is_ready(claim: Object) -> bool:
    """Whether drivers have made all devices ready that have to be before a pod is bound. Raises BindingRefused."""
    status = claim.get("status") or {}
    for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or ():
        if not result.get("bindingConditions"):
            continue
        conditions = _conditions(status, result)
        if conditions is None:
            return False
        for name in result.get("bindingFailureConditions") or ():
            failed = conditions.get(name)
            if failed is not None and failed["status"] == "True":
                stated = f'reason={failed["reason"]}, message="{failed["message"]}"'
                raise BindingRefused(f"device binding failed: claim={claim['metadata']['name']}, {stated}")
        if any((conditions.get(name) or {}).get("status") != "True" for name in result["bindingConditions"]):
            return False
    return True


def has_binding_conditions(claim: Object) -> bool:
    """Whether a driver has a say before a pod with this claim is bound."""
    results = ((allocation_in(claim) or {}).get("devices") or {}).get("results") or ()
    return any(result.get("bindingConditions") for result in results)


def _conditions(status: Object, result: Object) -> dict[str, Object] | None:
    for device in status.get("devices") or ():
        if all(device.get(name) == result.get(name) for name in ("driver", "pool", "device", "shareID")):
            return {each["type"]: each for each in device.get("conditions") or ()}
    return None


def tainted_slices(slices: Iterable[Object], rules: Iterable[Object]) -> list[Object]:
    """The slices with the taints that rules put on their devices."""
    listed = list(rules)
    return [_with_taints(each, listed) for each in slices] if listed else list(slices)


def _with_taints(part: Object, rules: list[Object]) -> Object:
    spec = part["spec"]
    meant = [rule for rule in rules if _means(rule, driver=spec["driver"], pool=spec["pool"]["name"])]
    if not meant:
        return part
    devices = [
        {**device, "taints": [*(device.get("taints") or ()), *(rule["spec"]["taint"] for rule in chosen)]}
        if (chosen := [rule for rule in meant if _means(rule, device=device["name"])])
        else device
        for device in spec.get("devices") or ()
    ]
    return {**part, "spec": {**spec, "devices": devices}}


def _means(rule: Object, **facts: str) -> bool:
    selector = rule["spec"].get("deviceSelector") or {}
    return all(selector.get(name, fact) == fact for name, fact in facts.items())
