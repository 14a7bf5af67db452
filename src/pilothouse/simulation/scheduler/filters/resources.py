"""Filters on what nodes have to give: resources, a number of pods, ports on the host."""

from __future__ import annotations

from typing import Final

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.devices.extended import backed_names
from pilothouse.simulation.scheduler.filters.verdict import Judge, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.requests import clash
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_PORTS_TAKEN: Final = Verdict(("node(s) didn't have free ports for the requested pod ports",))
_FIRST: Final = ("cpu", "memory", "ephemeral-storage")


def node_ports(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Host ports must be free."""
    wanted = pod.ports
    if not wanted:
        return None
    return lambda info: _PORTS_TAKEN if clash(wanted, info.ports) else None


def node_resources_fit(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Every requested resource must be free, unless devices stand behind it, and one more pod must fit by number."""
    requests = [(name, amount) for name, amount in pod.requests.items() if amount > 0]
    backed = backed_names(pod, cluster.devices)
    requests.sort(key=lambda each: (_FIRST.index(each[0]) if each[0] in _FIRST else len(_FIRST), each[0]))

    def is_backed(name: str, info: NodeInfo) -> bool:
        return name in backed and not info.allocatable.get(name)

    def judge(info: NodeInfo) -> Verdict | None:
        if len(info.pods) < info.most_pods:
            allocatable, requested = info.allocatable, info.requested
            for name, amount in requests:
                if amount > allocatable.get(name, 0) - requested.get(name, 0) and not is_backed(name, info):
                    break
            else:
                return None
        return refuse(info)

    def refuse(info: NodeInfo) -> Verdict:
        reasons: list[str] = []
        resolvable = True
        if len(info.pods) + 1 > info.most_pods:
            reasons.append("Too many pods")
        for name, amount in requests:
            allocatable = info.allocatable.get(name, 0)
            if amount > allocatable - info.requested.get(name, 0) and not is_backed(name, info):
                reasons.append(f"Insufficient {name}")
                resolvable = resolvable and amount <= allocatable
        return Verdict(tuple(reasons), resolvable)

    return judge
