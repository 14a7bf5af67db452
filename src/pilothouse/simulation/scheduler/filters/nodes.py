"""Filters that look at the node alone: its name, labels, taints, and whether it is cordoned."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.node_selection import UNSCHEDULABLE_TAINT, required_nodes, untolerated
from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.filters.verdict import Judge, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_CORDONED: Final = Verdict(("node(s) were unschedulable",), resolvable=False)
_OTHER_NAME: Final = Verdict(("node(s) didn't match the requested node name",), resolvable=False)
_TAINTED: Final = Verdict(("node(s) had untolerated taint(s)",), resolvable=False)
_NOT_SELECTED: Final = Verdict(("node(s) didn't match Pod's node affinity/selector",), resolvable=False)


def node_unschedulable(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Cordoned nodes take only pods that tolerate it."""
    if any(tolerates(each, UNSCHEDULABLE_TAINT) for each in pod.spec.get("tolerations") or ()):
        return None
    return lambda info: _CORDONED if info.unschedulable else None


def node_name(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """A pod that names its node goes there or nowhere."""
    if not pod.node_name:
        return None
    return lambda info: None if info.name == pod.node_name else _OTHER_NAME


def taint_toleration(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Taints that keep pods away must be tolerated."""
    tolerations = pod.spec.get("tolerations") or ()

    def judge(info: NodeInfo) -> Verdict | None:
        return _TAINTED if info.taints and untolerated(info.taints, tolerations) is not None else None

    return judge


def node_affinity(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Node selector and required node affinity."""
    test = required_nodes(pod.spec)
    if test is None:
        return None
    return lambda info: None if test(info) else _NOT_SELECTED
