"""Topology spread constraints, as filters and scores both read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pilothouse.controllers.runtime.node_selection import NodeTest, untolerated
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

HOSTNAME: Final = "kubernetes.io/hostname"
MUST: Final = "DoNotSchedule"
SHOULD: Final = "ScheduleAnyway"


class Constraint(NamedTuple):
    """One constraint; ``selector`` has the values of the pod's own labels in it where keys are to match."""

    topology_key: str
    max_skew: int
    selector: labels.Selector
    min_domains: int
    honours_affinity: bool
    honours_taints: bool

    def counts(self, pod: PodInfo, info: NodeInfo, required: NodeTest | None) -> bool:
        """Whether the node takes part in the counting."""
        if self.honours_affinity and required is not None and not required(info):
            return False
        return not self.honours_taints or untolerated(info.taints, pod.spec.get("tolerations") or ()) is None


def constraints(pod: PodInfo, action: str) -> tuple[Constraint, ...]:
    """The pod's own constraints with this consequence."""
    listed: Iterable[Object] = pod.spec.get("topologySpreadConstraints") or ()
    return tuple(_read(each, pod) for each in listed if each["whenUnsatisfiable"] == action)


def _read(constraint: Object, pod: PodInfo) -> Constraint:
    selector = labels.from_object(constraint.get("labelSelector"))
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in pod.labels]
    if keys:
        selector = selector.adding(*(labels.Requirement(key, "in", (pod.labels[key],)) for key in keys))
    return Constraint(
        constraint["topologyKey"],
        constraint["maxSkew"],
        selector,
        constraint.get("minDomains") or 1,
        constraint.get("nodeAffinityPolicy") != "Ignore",
        constraint.get("nodeTaintsPolicy") == "Honor",
    )


def has_all_keys(constraints: Iterable[Constraint], info: NodeInfo) -> bool:
    """Whether the node is in a domain of every constraint."""
    return all(each.topology_key in info.labels for each in constraints)


def default_selector(pod: PodInfo, cluster: ClusterView) -> labels.Selector:
    """What unites the pod with its like: the services that mean it and the workload that owns it."""
    found: dict[str, str] = {}
    for service in cluster.services(pod.namespace):
        selector: Mapping[str, str] = service["spec"].get("selector") or {}
        if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
            found |= selector
    chosen = labels.from_labels(found)
    owner = next((each for each in pod.pod["metadata"].get("ownerReferences") or () if each.get("controller")), None)
    if owner is None:
        return chosen
    if owner["kind"] == "ReplicationController":
        controller = cluster.replication_controller(pod.namespace, owner["name"])
        own = {} if controller is None else controller["spec"].get("selector") or {}
        return labels.from_labels({**found, **own})
    get = {"ReplicaSet": cluster.replica_set, "StatefulSet": cluster.stateful_set}.get(owner["kind"])
    workload = None if get is None else get(pod.namespace, owner["name"])
    if workload is None:
        return chosen
    return chosen.adding(*labels.from_object(workload["spec"].get("selector")).requirements)
