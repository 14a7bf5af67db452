"""Constraints of even spreading that must hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.controllers.runtime.node_selection import required_nodes
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Judge, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo
from pilothouse.simulation.scheduler.topology_spread import MUST, Constraint, constraints, has_all_keys

_TOO_UNEVEN: Final = Verdict(("node(s) didn't match pod topology spread constraints",))
_NO_LABEL: Final = Verdict(
    ("node(s) didn't match pod topology spread constraints (missing required label)",), resolvable=False
)


def pod_topology_spread(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """No domain may get further ahead of the emptiest one than the skew allows."""
    required = constraints(pod, MUST)
    if not required:
        return None
    limits = [_Limit(each, required, pod, cluster) for each in required]

    def judge(info: NodeInfo) -> Verdict | None:
        for limit in limits:
            verdict = limit.judge(info)
            if verdict is not None:
                return verdict
        return None

    return judge


class _Limit:
    """How many matching pods each domain has, and how many more one may take."""

    def __init__(
        self, constraint: Constraint, required: tuple[Constraint, ...], pod: PodInfo, cluster: ClusterView
    ) -> None:
        self._key = constraint.topology_key
        self._counts = _count(constraint, required, pod, cluster)
        fewest = min(self._counts.values(), default=0) if len(self._counts) >= constraint.min_domains else 0
        own = 1 if constraint.selector.matches(pod.labels) else 0
        self._most = constraint.max_skew + fewest - own

    def judge(self, info: NodeInfo) -> Verdict | None:
        value = info.labels.get(self._key)
        if value is None:
            return _NO_LABEL
        return _TOO_UNEVEN if self._counts.get(value, 0) > self._most else None


def _count(
    constraint: Constraint, required: tuple[Constraint, ...], pod: PodInfo, cluster: ClusterView
) -> Mapping[str, int]:
    affinity = required_nodes(pod.spec)
    matching = cluster.snapshot.matching(pod.namespace, constraint.selector)
    counts: dict[str, int] = {}
    for info in cluster.snapshot.nodes:
        if has_all_keys(required, info) and constraint.counts(pod, info, affinity):
            value = info.labels[constraint.topology_key]
            counts[value] = counts.get(value, 0) + matching.get(info.name, 0)
    return counts
