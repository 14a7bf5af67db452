"""Finding a node for a pod: filters rule out, scores choose among what is left.

With many nodes not all are looked at: the search begins where the last one ended and stops when enough have been found
(all of 100, about 40 % of 1,000, 5 % of very many), so that its cost does not grow with the cluster.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Filter, Judge, Unschedulable, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.profile import FILTERS, SCORES
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_ALWAYS_ENOUGH: Final = 100


@dataclass(slots=True)
class NoFit(Exception):
    """Why no node will do: for all nodes at once, or for each."""

    nodes: int
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    for_all: str = ""
    is_early: bool = False

    def message(self, after: str = "") -> str:
        """What events and conditions say; ``after`` is what preemption had to say."""
        text = f"0/{self.nodes} nodes are available:"
        if self.for_all:
            text += f" {self.for_all}."
        else:
            text += histogram(self.verdicts.values())
        return f"{text} {after}" if after else text


class NoNodes(Exception):
    """The cluster has no nodes at all."""


def histogram(verdicts: Iterable[Verdict]) -> str:
    """Reasons with how many nodes have each, sorted as text; begins with a blank and ends with a full stop."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        for reason in verdict.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    listed = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f" {', '.join(listed)}." if listed else ""


class Placement:
    """Finds nodes for pods, one at a time."""

    def __init__(
        self,
        filters: Sequence[Filter] = FILTERS,
        choose: Callable[[Sequence[NodeInfo]], NodeInfo] = random.choice,
    ) -> None:
        self._filters = filters
        self._choose = choose
        self._next = 0

    def find(self, pod: PodInfo, cluster: ClusterView) -> NodeInfo:
        """The best node. Raises NoFit, or NoNodes."""
        nodes = cluster.snapshot.nodes
        if not nodes:
            raise NoNodes
        judges = self._judges(pod, cluster, len(nodes))
        if pod.nominated_node:
            nominated = cluster.snapshot.node(pod.nominated_node)
            if nominated is not None and judge_node(judges, nominated) is None:
                return nominated
        fitting = self._search(nodes, judges)
        return fitting[0] if len(fitting) == 1 else self._best(pod, cluster, fitting)

    def judges(self, pod: PodInfo, cluster: ClusterView) -> list[Judge]:
        """What the filters have to say about the pod as the cluster is now. Raises Unschedulable."""
        made = (each(pod, cluster) for each in self._filters)
        return [judge for judge in made if judge is not None]

    def _judges(self, pod: PodInfo, cluster: ClusterView, nodes: int) -> list[Judge]:
        try:
            return self.judges(pod, cluster)
        except Unschedulable as error:
            raise NoFit(nodes, for_all=str(error), is_early=error.is_early) from None

    def _search(self, nodes: Sequence[NodeInfo], judges: Sequence[Judge]) -> list[NodeInfo]:
        enough, count = _enough(len(nodes)), len(nodes)
        fitting: list[NodeInfo] = []
        verdicts: dict[str, Verdict] = {}
        start = self._next % count
        for step in range(count):
            info = nodes[(start + step) % count]
            verdict = judge_node(judges, info)
            if verdict is not None:
                verdicts[info.name] = verdict
                continue
            fitting.append(info)
            if len(fitting) >= enough:
                self._next = (start + step + 1) % count
                break
        if not fitting:
            raise NoFit(count, verdicts)
        return fitting

    def _best(self, pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> NodeInfo:
        totals = [0] * len(nodes)
        for score, weight in SCORES:
            points = score(pod, cluster, nodes)
            if points is not None:
                for index, each in enumerate(points):
                    totals[index] += weight * each
        most = max(totals)
        return self._choose([info for info, total in zip(nodes, totals, strict=True) if total == most])


def judge_node(judges: Iterable[Judge], info: NodeInfo) -> Verdict | None:
    """The first verdict against a node."""
    for judge in judges:
        verdict = judge(info)
        if verdict is not None:
            return verdict
    return None


def _enough(nodes: int) -> int:
    if nodes <= _ALWAYS_ENOUGH:
        return nodes
    percent = max(5, 50 - nodes // 125)
    return max(_ALWAYS_ENOUGH, nodes * percent // 100)
