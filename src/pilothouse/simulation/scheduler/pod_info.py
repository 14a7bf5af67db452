"""A pod as the scheduler sees it: what rules ask again and again, worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pilothouse.machinery import labels
from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.requests import Amounts, HostPort, assumed_requests, host_ports, pod_requests

NamespaceLabels = Callable[[str], Mapping[str, str]]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_DEFAULT_SCHEDULER: Final = "default-scheduler"
_PARTS: Final = ("containers", "initContainers", "volumes", "tolerations", "topologySpreadConstraints")
READING: Final = "pod info"
"""The name under which an informer keeps what ``read`` makes of pods."""


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

    @classmethod
    def read(cls, pod: Object) -> PodInfo:
        """A pod with all that takes long to work out."""
        info = cls(pod)
        _ = info.requests, info.ports, info.assumed, info.has_affinity
        return info

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

    @lazy
    def terms(self) -> int:
        """How many terms of it are about other pods."""
        kinds = map(self._affinity, ("podAffinity", "podAntiAffinity"))
        return sum(len(kind.get(_REQUIRED) or ()) + len(kind.get(_PREFERRED) or ()) for kind in kinds)

    @lazy
    def parts(self) -> int:
        """How many other things nodes are looked at for."""
        nodes = self._affinity("nodeAffinity")
        required = (nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
        own = sum(len(self.spec.get(part) or ()) for part in _PARTS)
        return own + len(required) + len(nodes.get(_PREFERRED) or ())

    @lazy
    def requests(self) -> Amounts:
        """What it needs."""
        return pod_requests(self.pod)

    @lazy
    def assumed(self) -> tuple[int, int]:
        """CPU and memory for scoring."""
        return assumed_requests(self.pod)

    @lazy
    def ports(self) -> frozenset[HostPort]:
        """The host ports it needs."""
        return host_ports(self.pod)

    @lazy
    def affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it must be near."""
        return self._required("podAffinity")

    @lazy
    def anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it must be far from."""
        return self._required("podAntiAffinity")

    @lazy
    def preferred_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it would like to be near."""
        return self._preferred("podAffinity")

    @lazy
    def preferred_anti_affinity(self) -> tuple[AffinityTerm, ...]:
        """Pods it would like to be far from."""
        return self._preferred("podAntiAffinity")

    @lazy
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
