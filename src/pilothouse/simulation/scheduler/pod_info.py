"""A pod as the scheduler sees it: what rules ask again and again, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.requests import Amounts, HostPort, assumed_requests, host_ports, pod_requests

NamespaceLabels = Callable[[str], Mapping[str, str]]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_DEFAULT_SCHEDULER: Final = "default-scheduler"


class AffinityTerm(NamedTuple):
    """Pods that a pod wants near or far, within the domains of one label of nodes."""

    topology_key: str
    selector: labels.Selector
    namespaces: frozenset[str]
    namespace_selector: labels.Selector | None
    weight: int

    def matches(self, pod: PodInfo, namespace_labels: NamespaceLabels) -> bool:
        """Whether the term means this pod."""
        if pod.namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels(pod.namespace)):
                return False
        return self.selector.matches(pod.labels)


class PodInfo:
    """One pod, and what follows from its fields. Not to be changed."""

    def __init__(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        self.pod = pod
        self.uid: str = metadata["uid"]
        self.namespace: str = metadata["namespace"]
        self.name: str = metadata["name"]
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.priority: int = spec.get("priority") or 0
        self.node_name: str = spec.get("nodeName") or ""
        self.scheduler: str = spec.get("schedulerName") or _DEFAULT_SCHEDULER

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def spec(self) -> Object:
        """The pod's spec."""
        spec: Object = self.pod["spec"]
        return spec

    @property
    def status(self) -> Object:
        """The pod's status; empty where it has none."""
        return self.pod.get("status") or {}

    @property
    def is_terminating(self) -> bool:
        """Whether it is on its way out."""
        return "deletionTimestamp" in self.pod["metadata"]

    @property
    def nominated_node(self) -> str:
        """The node on which room is made for it."""
        return str(self.status.get("nominatedNodeName") or "")

    @cached_property
    def requests(self) -> Amounts:
        """What it needs."""
        return pod_requests(self.pod)

    @cached_property
    def assumed(self) -> tuple[int, int]:
        """CPU and memory for scoring."""
        return assumed_requests(self.pod)

    @cached_property
    def ports(self) -> frozenset[HostPort]:
        """The host ports it needs."""
        return host_ports(self.pod)

    @cached_property
    def affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it must be near."""
        return self._required("podAffinity")

    @cached_property
    def anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it must be far from."""
        return self._required("podAntiAffinity")

    @cached_property
    def preferred_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it would like to be near."""
        return self._preferred("podAffinity")

    @cached_property
    def preferred_anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it would like to be far from."""
        return self._preferred("podAntiAffinity")

    @cached_property
    def has_affinity(self) -> bool:
        """Whether it says anything of other pods."""
        return bool(self.affinity or self.anti_affinity or self.preferred_affinity or self.preferred_anti_affinity)

    def _required(self, kind: str) -> tuple[AffinityTerm, ...]:
        terms = self._affinity(kind).get(_REQUIRED) or ()
        return tuple(self._term(term, 0) for term in terms)

    def _preferred(self, kind: str) -> tuple[AffinityTerm, ...]:
        weighted = self._affinity(kind).get(_PREFERRED) or ()
        return tuple(self._term(each["podAffinityTerm"], each["weight"]) for each in weighted)

    def _affinity(self, kind: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self.spec.get("affinity") or {}).get(kind) or {}
        return found

    def _term(self, term: Object, weight: int) -> AffinityTerm:
        named, chosen = term.get("namespaces") or (), term.get("namespaceSelector")
        own = () if named or chosen is not None else (self.namespace,)
        return AffinityTerm(
            term["topologyKey"],
            labels.from_object(term.get("labelSelector")),
            frozenset((*named, *own)),
            None if chosen is None else labels.from_object(chosen),
            weight,
        )
