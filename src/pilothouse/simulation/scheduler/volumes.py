"""The claims of a pod, sorted by what has yet to happen to them, and the volumes that would do for unbound ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pilothouse.controllers.runtime.node_selection import matches_terms
from pilothouse.machinery import labels, quantity
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_WAIT: Final = "WaitForFirstConsumer"
_LEGACY_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


class ClaimError(Exception):
    """The pod's claims keep it from any node; the message says how."""


@dataclass(slots=True)
class PodClaims:
    """Bound claims, claims that wait for a node, and claims that should have been bound before."""

    bound: list[Object] = field(default_factory=list)
    delayed: list[Object] = field(default_factory=list)
    immediate: list[Object] = field(default_factory=list)


def claims_of(pod: PodInfo, cluster: ClusterView) -> PodClaims:
    """The claims that the pod's volumes name. Raises ClaimError where one is missing, lost or on its way out."""
    found = PodClaims()
    for volume in pod.spec.get("volumes") or ():
        claim = _claim(volume, pod, cluster)
        if claim is None:
            continue
        if is_bound(claim):
            found.bound.append(claim)
        elif _waits_for_node(claim, cluster):
            found.delayed.append(claim)
        else:
            found.immediate.append(claim)
    return found


def _claim(volume: Object, pod: PodInfo, cluster: ClusterView) -> Object | None:
    is_ephemeral = "ephemeral" in volume
    if is_ephemeral:
        name = f"{pod.name}-{volume['name']}"
    elif "persistentVolumeClaim" in volume:
        name = volume["persistentVolumeClaim"]["claimName"]
    else:
        return None
    claim = cluster.claim(pod.namespace, name)
    if claim is None:
        if is_ephemeral:
            raise ClaimError(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        raise ClaimError(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume_name = claim["spec"].get("volumeName", "")
        raise ClaimError(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name}"')
    if "deletionTimestamp" in claim["metadata"]:
        raise ClaimError(f'persistentvolumeclaim "{name}" is being deleted')
    if is_ephemeral and not _is_owned(claim, pod):
        key = f"{pod.namespace}/{pod.name}"
        raise ClaimError(f"PVC {pod.namespace}/{name} was not created for pod {key} (pod is not owner)")
    return claim


def _is_owned(claim: Object, pod: PodInfo) -> bool:
    owners = claim["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == pod.uid and owner.get("controller") for owner in owners)


def is_bound(claim: Object) -> bool:
    """Whether the binding of the claim to a volume is complete."""
    annotations = claim["metadata"].get("annotations") or {}
    return bool(claim["spec"].get("volumeName")) and "pv.kubernetes.io/bind-completed" in annotations


def class_name(claim: Object) -> str:
    """The storage class of a claim or a volume."""
    annotated = (claim["metadata"].get("annotations") or {}).get(_LEGACY_CLASS)
    return str(annotated if annotated is not None else claim["spec"].get("storageClassName") or "")


def _waits_for_node(claim: Object, cluster: ClusterView) -> bool:
    if claim["spec"].get("volumeName"):
        return False
    storage_class = cluster.storage_class("", class_name(claim))
    return storage_class is not None and storage_class.get("volumeBindingMode") == _WAIT


def find_volume(claim: Object, candidates: Iterable[Object], info: NodeInfo, taken: Iterable[str]) -> Object | None:
    """The smallest free volume that would do for the claim on this node; one reserved for the claim comes first."""
    excluded = set(taken)
    best: Object | None = None
    for volume in candidates:
        if volume["metadata"]["name"] in excluded or not fits(volume, claim, info):
            continue
        if _is_reserved_for(volume, claim):
            return volume
        if best is None or _capacity(volume) < _capacity(best):
            best = volume
    return best


def fits(volume: Object, claim: Object, info: NodeInfo | None) -> bool:
    """Whether a volume has what the claim asks for and can be reached from the node."""
    spec, wanted = volume["spec"], claim["spec"]
    reserved = spec.get("claimRef")
    if reserved is not None and not _is_reserved_for(volume, claim):
        return False
    if reserved is None and (volume.get("status") or {}).get("phase") not in ("Available", "", None):
        return False
    if "deletionTimestamp" in volume["metadata"] or class_name(volume) != class_name(claim):
        return False
    if (spec.get("volumeMode") or "Filesystem") != (wanted.get("volumeMode") or "Filesystem"):
        return False
    if not set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    requests = (wanted.get("resources") or {}).get("requests") or {}
    if _capacity(volume) < quantity.parse(str(requests.get("storage", "0"))):
        return False
    selector = wanted.get("selector")
    if selector is not None and not labels.from_object(selector).matches(volume["metadata"].get("labels") or {}):
        return False
    return info is None or is_reachable(volume, info)


def is_reachable(volume: Object, info: NodeInfo) -> bool:
    """Whether the volume's node affinity lets it be used on the node."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    return required is None or matches_terms(required, info)


def _is_reserved_for(volume: Object, claim: Object) -> bool:
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if reference is None:
        return False
    same = reference.get("name") == metadata["name"] and reference.get("namespace") == metadata["namespace"]
    return same and reference.get("uid", "") in ("", metadata["uid"])


def _capacity(volume: Object) -> quantity.Quantity:
    return quantity.parse(str((volume["spec"].get("capacity") or {}).get("storage", "0")))


def allows_topology(storage_class: Object, node_labels: Mapping[str, str]) -> bool:
    """Whether volumes of the class may be made for nodes with these labels."""
    terms = storage_class.get("allowedTopologies") or ()
    return not terms or any(
        all(node_labels.get(each["key"]) in each["values"] for each in term.get("matchLabelExpressions") or ())
        for term in terms
    )
