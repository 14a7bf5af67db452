"""Scores by the pods around: preferred affinity both ways, and even spreading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pilothouse.controllers.runtime.node_selection import required_nodes
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import AffinityTerm, PodInfo
from pilothouse.simulation.scheduler.scores.score import BEST
from pilothouse.simulation.scheduler.snapshot import NodeInfo
from pilothouse.simulation.scheduler.topology_spread import (
    HOSTNAME,
    SHOULD,
    Constraint,
    constraints,
    default_selector,
    has_all_keys,
)

_ZONE: Final = "topology.kubernetes.io/zone"
_REQUIRED_WEIGHT: Final = 1
_DEFAULT_SKEWS: Final = ((HOSTNAME, 3), (_ZONE, 5))


def inter_pod_affinity(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """Weights of preferred terms, of the pod about others and of others about the pod, summed by domain."""
    asks = bool(pod.preferred_affinity or pod.preferred_anti_affinity)
    domains: dict[tuple[str, str], int] = {}
    others = cluster.snapshot.pods() if asks else cluster.snapshot.pods_with_affinity()

    def count(terms: Iterable[AffinityTerm], meant: PodInfo, info: NodeInfo, sign: int, weight: int = 0) -> None:
        for term in terms:
            value = info.labels.get(term.topology_key)
            if value is not None and term.matches(meant, cluster.namespace_labels):
                key = (term.topology_key, value)
                domains[key] = domains.get(key, 0) + sign * (weight or term.weight)

    for other, info in others:
        count(pod.preferred_affinity, other, info, 1)
        count(pod.preferred_anti_affinity, other, info, -1)
        count(other.affinity, pod, info, 1, _REQUIRED_WEIGHT)
        count(other.preferred_affinity, pod, info, 1)
        count(other.preferred_anti_affinity, pod, info, -1)
    if not domains:
        return None
    sums = [sum(weight for (key, value), weight in domains.items() if info.labels.get(key) == value) for info in nodes]
    least, most = min(sums), max(sums)
    return [int(BEST * ((each - least) / (most - least))) if most > least else 0 for each in sums]


def pod_topology_spread(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The fewer matching pods in the node's domains, the better; by default for pods of one service or workload."""
    has_own = bool(pod.spec.get("topologySpreadConstraints"))
    wanted = constraints(pod, SHOULD) if has_own else _default_constraints(pod, cluster)
    if not wanted:
        return None
    counted = [not has_own or has_all_keys(wanted, info) for info in nodes]
    taking_part = [info for info, counts in zip(nodes, counted, strict=True) if counts]
    sums = [0.0] * len(nodes)
    for constraint in wanted:
        key, more = constraint.topology_key, constraint.max_skew - 1
        if not any(key in info.labels for info in taking_part):
            continue
        counts, domains = _count(constraint, wanted if has_own else (), pod, cluster, taking_part)
        weight = math.log(domains + 2)
        for index, info in enumerate(nodes):
            if counted[index] and key in info.labels:
                value = info.name if key == HOSTNAME else info.labels[key]
                sums[index] += counts.get(value, 0) * weight + more
    return _normalized([math.floor(each + 0.5) for each in sums], counted)


def _default_constraints(pod: PodInfo, cluster: ClusterView) -> tuple[Constraint, ...]:
    selector = default_selector(pod, cluster)
    if selector.empty:
        return ()
    return tuple(Constraint(key, skew, selector, 1, True, False) for key, skew in _DEFAULT_SKEWS)


def _count(
    constraint: Constraint,
    required: tuple[Constraint, ...],
    pod: PodInfo,
    cluster: ClusterView,
    nodes: Sequence[NodeInfo],
) -> tuple[Mapping[str, int], int]:
    """Matching pods by domain (by node for host names), and how many domains the nodes are in."""
    matching = cluster.snapshot.matching(pod.namespace, constraint.selector)
    if constraint.topology_key == HOSTNAME:
        return matching, len(nodes)
    domains = {info.labels.get(constraint.topology_key, "") for info in nodes}
    affinity = required_nodes(pod.spec)
    counts: dict[str, int] = {}
    for info in cluster.snapshot.nodes:
        value = info.labels.get(constraint.topology_key, "")
        if value in domains and has_all_keys(required, info) and constraint.counts(pod, info, affinity):
            counts[value] = counts.get(value, 0) + matching.get(info.name, 0)
    return counts, len(domains)


def _normalized(sums: Sequence[int], counted: Sequence[bool]) -> list[int]:
    present = {each for each, counts in zip(sums, counted, strict=True) if counts}
    most, least = max(present, default=0), min(present, default=0)
    return [
        0 if not counts else BEST if most == 0 else BEST * (most + least - each) // most
        for each, counts in zip(sums, counted, strict=True)
    ]
