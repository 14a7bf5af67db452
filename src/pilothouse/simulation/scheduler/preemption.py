"""Preemption: which pods of lower priority must go so that a pod of higher priority finds a place.

    for every node that the eviction of pods might help
        take away all pods of lower priority          does the pod fit then? else not this node
        give them back, the most important first      those whose return leaves no room are the victims
    choose the node that costs least

Pods whose disruption budget is used up are given back first, so that they are victims only where nothing else helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Judge, Unschedulable, Verdict
from pilothouse.simulation.scheduler.placement import NoFit, histogram, judge_node
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_NO_VICTIMS: Final = Verdict(("No preemption victims found for incoming pod",))
_NOT_HELPFUL: Final = Verdict(("Preemption is not helpful for scheduling",))
_PRIORITY_OFFSET: Final = 2**31
_LEAST_CANDIDATES: Final = 100
Judges = Callable[[PodInfo, ClusterView], list[Judge]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, who would have to go, the most important first, and how many budgets that would break."""

    node: NodeInfo
    victims: Sequence[PodInfo]
    violations: int

    @property
    def cost(self) -> tuple[object, ...]:
        """What candidates are compared by, the cheapest first."""
        started = min(start_time(pod) for pod in self.victims if pod.priority == self.victims[0].priority)
        return (
            self.violations,
            self.victims[0].priority,
            sum(pod.priority + _PRIORITY_OFFSET for pod in self.victims),
            len(self.victims),
            tuple(-ord(letter) for letter in started),
        )


class NoCandidate(Exception):
    """Preemption does not help; the message is what the pod's condition says of it."""


def find_candidate(pod: PodInfo, no_fit: NoFit, cluster: ClusterView, judges: Judges) -> Candidate:
    """The node where preemption costs least. Raises NoCandidate."""
    _check_eligible(pod, no_fit, cluster)
    nodes = cluster.snapshot.nodes
    budgets = list(cluster.disruption_budgets(""))
    enough = max(_LEAST_CANDIDATES, len(nodes) // 10)
    candidates: list[Candidate] = []
    verdicts: dict[str, Verdict] = {}
    for info in nodes:
        verdict = no_fit.verdicts.get(info.name)
        if no_fit.for_all or (verdict is not None and not verdict.resolvable):
            verdicts[info.name] = _NOT_HELPFUL
            continue
        found = _select_victims(pod, info, budgets, cluster, judges)
        if isinstance(found, Candidate):
            candidates.append(found)
            if len(candidates) >= enough:
                break
        else:
            verdicts[info.name] = found
    if not candidates:
        raise NoCandidate(f"0/{len(nodes)} nodes are available:{histogram(verdicts.values())}")
    return min(candidates, key=lambda each: each.cost)


def _check_eligible(pod: PodInfo, no_fit: NoFit, cluster: ClusterView) -> None:
    if pod.spec.get("preemptionPolicy") == "Never":
        raise NoCandidate("not eligible due to preemptionPolicy=Never.")
    nominated = cluster.snapshot.node(pod.nominated_node) if pod.nominated_node else None
    if nominated is None:
        return
    verdict = no_fit.verdicts.get(nominated.name)
    if verdict is not None and not verdict.resolvable:
        return
    if any(other.priority < pod.priority and _is_being_preempted(other) for other in nominated.pods.values()):
        raise NoCandidate("not eligible due to a terminating pod on the nominated node.")


def _is_being_preempted(pod: PodInfo) -> bool:
    if not pod.is_terminating:
        return False
    conditions = (pod.pod.get("status") or {}).get("conditions") or ()
    return any(
        each["type"] == "DisruptionTarget"
        and each["status"] == "True"
        and each.get("reason") == "PreemptionByScheduler"
        for each in conditions
    )


def _select_victims(
    pod: PodInfo, info: NodeInfo, budgets: Sequence[Object], cluster: ClusterView, judges: Judges
) -> Candidate | Verdict:
    """Who must go from this node. The snapshot is changed while trying, and is as before afterwards."""
    possible = [other for other in info.pods.values() if other.priority < pod.priority]
    if not possible:
        return _NO_VICTIMS
    possible.sort(key=_importance)
    snapshot, name = cluster.snapshot, info.name

    def fits() -> Verdict | None:
        try:
            return judge_node(judges(pod, cluster), info)
        except Unschedulable as error:
            return Verdict((str(error),), resolvable=False)

    for other in possible:
        snapshot.remove_pod(other.uid)
    try:
        verdict = fits()
        if verdict is not None:
            return verdict
        violating, others = _by_violation(possible, budgets)
        victims: list[PodInfo] = []
        for other in (*violating, *others):
            snapshot.add_pod(other, name)
            if fits() is not None:
                snapshot.remove_pod(other.uid)
                victims.append(other)
    finally:
        for other in possible:
            snapshot.add_pod(other, name)
    if not victims:
        return _NO_VICTIMS
    violations = sum(1 for other in victims if other in violating)
    return Candidate(info, sorted(victims, key=_importance), violations)


def _importance(pod: PodInfo) -> tuple[int, str]:
    """A sort key, the most important first: by priority, then who has run longer."""
    return -pod.priority, start_time(pod)


def start_time(pod: PodInfo) -> str:
    """Since when the pod runs; the timestamps of Kubernetes sort as text."""
    return str((pod.pod.get("status") or {}).get("startTime") or "9999")


def _by_violation(pods: Sequence[PodInfo], budgets: Sequence[Object]) -> tuple[list[PodInfo], list[PodInfo]]:
    """Those whose going would break a budget, given that the ones before them go too, and the others."""
    allowed = {id(budget): (budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in budgets}
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        violates = False
        for budget in budgets:
            if not _concerns(budget, pod):
                continue
            allowed[id(budget)] -= 1
            violates = violates or allowed[id(budget)] < 0
        (violating if violates else others).append(pod)
    return violating, others


def _concerns(budget: Object, pod: PodInfo) -> bool:
    if budget["metadata"]["namespace"] != pod.namespace or not pod.labels:
        return False
    selector = labels.from_object(budget["spec"].get("selector"))
    if selector.empty or not selector.matches(pod.labels):
        return False
    return pod.name not in ((budget.get("status") or {}).get("disruptedPods") or {})
