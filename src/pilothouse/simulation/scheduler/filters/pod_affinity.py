"""Pod affinity and anti-affinity, of the pod itself and of those that run already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Judge, Verdict
from pilothouse.simulation.scheduler.pod_info import AffinityTerm, PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_AFFINITY: Final = Verdict(("node(s) didn't match pod affinity rules",), resolvable=False)
_ANTI_AFFINITY: Final = Verdict(("node(s) didn't match pod anti-affinity rules",))
_EXISTING: Final = Verdict(("node(s) didn't satisfy existing pods anti-affinity rules",))
Domains = set[tuple[str, str]]
"""Pairs of topology key and value."""


def inter_pod_affinity(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Near those the pod wants, far from those it does not want or that do not want it."""
    refused = _refused_by_others(pod, cluster)
    if not refused and not pod.affinity and not pod.anti_affinity:
        return None
    unwanted = _domains_with_any(pod.anti_affinity, cluster)
    wanted = _domains_with_all(pod.affinity, cluster)
    # The first of a group that wants to be together would otherwise never find a place.
    is_first = bool(pod.affinity) and not wanted and _matches_all(pod.affinity, pod, cluster)

    def judge(info: NodeInfo) -> Verdict | None:
        if pod.affinity and not _satisfied(pod.affinity, wanted, info, is_first):
            return _AFFINITY
        if unwanted and _is_in(unwanted, (term.topology_key for term in pod.anti_affinity), info):
            return _ANTI_AFFINITY
        if refused and _is_in(refused, {key for key, _ in refused}, info):
            return _EXISTING
        return None

    return judge


def _refused_by_others(pod: PodInfo, cluster: ClusterView) -> Domains:
    """The domains of pods whose own anti-affinity means this pod."""
    return {
        (term.topology_key, info.labels[term.topology_key])
        for other, info in cluster.snapshot.pods_with_affinity()
        for term in other.anti_affinity
        if term.topology_key in info.labels and term.matches(pod, cluster.namespace_labels)
    }


def _domains_with_any(terms: tuple[AffinityTerm, ...], cluster: ClusterView) -> Domains:
    if not terms:
        return set()
    return {
        (term.topology_key, info.labels[term.topology_key])
        for other, info in cluster.snapshot.pods()
        for term in terms
        if term.topology_key in info.labels and term.matches(other, cluster.namespace_labels)
    }


def _domains_with_all(terms: tuple[AffinityTerm, ...], cluster: ClusterView) -> Domains:
    """The domains of pods that all terms mean."""
    if not terms:
        return set()
    return {
        (term.topology_key, info.labels[term.topology_key])
        for other, info in cluster.snapshot.pods()
        if _matches_all(terms, other, cluster)
        for term in terms
        if term.topology_key in info.labels
    }


def _matches_all(terms: tuple[AffinityTerm, ...], pod: PodInfo, cluster: ClusterView) -> bool:
    return all(term.matches(pod, cluster.namespace_labels) for term in terms)


def _satisfied(terms: tuple[AffinityTerm, ...], wanted: Domains, info: NodeInfo, is_first: bool) -> bool:
    if any(term.topology_key not in info.labels for term in terms):
        return False
    return is_first or all((term.topology_key, info.labels[term.topology_key]) in wanted for term in terms)


def _is_in(domains: Domains, keys: Iterable[str], info: NodeInfo) -> bool:
    return any((key, info.labels.get(key)) in domains for key in keys)
