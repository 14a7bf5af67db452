"""Filters on volumes: can the claims of the pod be used, bound or provisioned on the node?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.machinery import labels, quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Judge, Unschedulable, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo
from pilothouse.simulation.scheduler.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    ClaimError,
    PodClaims,
    allows_topology,
    claims_of,
    class_name,
    find_volume,
    is_reachable,
)

_IN_USE: Final = Verdict(
    (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod",
    )
)
_OTHER_NODES: Final = "node(s) didn't match PersistentVolume's node affinity"
_NO_ROOM: Final = "node(s) did not have enough free storage"
_NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_OTHER_ZONE: Final = Verdict(("node(s) had no available volume zone",), resolvable=False)
_TOO_MANY: Final = Verdict(("node(s) exceed max volume count",))
_ZONES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def volume_restrictions(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """A claim for one pod alone is used by one pod alone."""
    exclusive = _exclusive_claims(pod, cluster)
    if not exclusive:
        return None
    holders = {
        info.name
        for other, info in cluster.snapshot.pods()
        if other.namespace == pod.namespace and exclusive & set(_claim_names(other))
    }
    if not holders:
        return None
    return lambda info: _IN_USE


def _exclusive_claims(pod: PodInfo, cluster: ClusterView) -> set[str]:
    exclusive = set()
    for name in _claim_names(pod):
        claim = cluster.claim(pod.namespace, name)
        if claim is None:
            raise Unschedulable(f'persistentvolumeclaim "{name}" not found')
        if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
            exclusive.add(name)
    return exclusive


def _claim_names(pod: PodInfo) -> Iterable[str]:
    volumes = pod.spec.get("volumes") or ()
    return (each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each)


def node_volume_limits(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """A node's drivers attach only so many volumes."""
    wanted = _driver_volumes(pod, cluster)
    if not wanted:
        return None

    def judge(info: NodeInfo) -> Verdict | None:
        csi_node = cluster.csi_node("", info.name)
        drivers = () if csi_node is None else csi_node["spec"].get("drivers") or ()
        limits = {each["name"]: (each.get("allocatable") or {}).get("count") for each in drivers}
        if all(limits.get(driver) is None for driver, _ in wanted):
            return None
        attached = set().union(*(_driver_volumes(other, cluster) for other in info.pods.values()))
        for driver in {driver for driver, _ in wanted}:
            limit = limits.get(driver)
            used = sum(1 for each, _ in attached | wanted if each == driver)
            if limit is not None and used > limit:
                return _TOO_MANY
        return None

    return judge


def _driver_volumes(pod: PodInfo, cluster: ClusterView) -> set[tuple[str, str]]:
    """The volumes of drivers that the pod has attached, as driver and a name of the volume."""
    found = set()
    for name in _claim_names(pod):
        claim = cluster.claim(pod.namespace, name)
        volume = None if claim is None else cluster.volume("", claim["spec"].get("volumeName") or "")
        source = None if volume is None else volume["spec"].get("csi")
        if source is not None:
            found.add((source["driver"], source["volumeHandle"]))
    return found


def volume_binding(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Bound volumes must be reachable; the others must be there to bind, or to be made, for this node."""
    try:
        claims = claims_of(pod, cluster)
    except ClaimError as error:
        raise Unschedulable(str(error)) from None
    if claims.immediate:
        raise Unschedulable("pod has unbound immediate PersistentVolumeClaims")
    if not claims.bound and not claims.delayed:
        return None
    volumes = [cluster.volume("", claim["spec"]["volumeName"]) for claim in claims.bound]
    candidates = list(cluster.volumes("")) if claims.delayed else []

    def judge(info: NodeInfo) -> Verdict | None:
        reasons = []
        if any(volume is not None and not is_reachable(volume, info) for volume in volumes):
            reasons.append(_OTHER_NODES)
        missing = _missing(claims, candidates, info, cluster) if claims.delayed else None
        if missing is not None:
            reasons.append(missing)
        if any(volume is None for volume in volumes):
            reasons.append(_GONE)
        return Verdict(tuple(reasons), resolvable=False) if reasons else None

    return judge


def _missing(claims: PodClaims, candidates: list[Object], info: NodeInfo, cluster: ClusterView) -> str | None:
    """Why claims that wait for a node cannot be bound on this one; nothing if they can."""
    taken: list[str] = []
    for claim in claims.delayed:
        selected = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
        if selected is not None and selected != info.name:
            return _NO_VOLUME
        volume = None if selected is not None else find_volume(claim, candidates, info, taken)
        if volume is not None:
            taken.append(volume["metadata"]["name"])
        elif not _can_provision(claim, info, cluster):
            return _NO_VOLUME
        elif not _has_room(claim, info, cluster):
            return _NO_ROOM
    return None


def _can_provision(claim: Object, info: NodeInfo, cluster: ClusterView) -> bool:
    storage_class = cluster.storage_class("", class_name(claim))
    if storage_class is None or storage_class.get("provisioner", "") in ("", NO_PROVISIONER):
        return False
    return allows_topology(storage_class, info.labels)


def _has_room(claim: Object, info: NodeInfo, cluster: ClusterView) -> bool:
    """Whether a driver that tells how much room it has, has enough of it for the claim within reach of the node."""
    name = class_name(claim)
    storage_class = cluster.storage_class("", name) or {}
    driver = cluster.csi_driver("", storage_class.get("provisioner") or "")
    if driver is None or not driver["spec"].get("storageCapacity"):
        return True
    size = quantity.parse(str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0")))
    return any(
        each["storageClassName"] == name
        and size <= quantity.parse(str(each.get("maximumVolumeSize") or each.get("capacity") or "0"))
        and each.get("nodeTopology") is not None
        and labels.from_object(each["nodeTopology"]).matches(info.labels)
        for each in cluster.capacities("")
    )


def volume_zone(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Volumes that carry labels of a zone are used in that zone."""
    demands: list[tuple[str, frozenset[str]]] = []
    for name in _claim_names(pod):
        claim = cluster.claim(pod.namespace, name)
        volume = None if claim is None else cluster.volume("", claim["spec"].get("volumeName") or "")
        own = {} if volume is None else volume["metadata"].get("labels") or {}
        demands += [(key, frozenset(own[key].split("__"))) for key in _ZONES if key in own]
    if not demands:
        return None

    def judge(info: NodeInfo) -> Verdict | None:
        if not any(key in info.labels for key in _ZONES):
            return None
        return None if all(info.labels.get(key) in values for key, values in demands) else _OTHER_ZONE

    return judge
