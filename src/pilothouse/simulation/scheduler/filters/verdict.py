"""What a filter is: it looks at the pod and the cluster once, and makes a judge of nodes if it has anything to say.

Filter(pod, cluster) -> None            nothing in this pod concerns the filter
                     -> Judge           asked for each node; None lets the pod in, else a Verdict says why not
                     raises Unschedulable   no node will do, whatever it is like
                     raises FilterFailed    something is wrong, which may be found out as late as for a node
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo


class Verdict(NamedTuple):
    """Why a node is ruled out, and whether the eviction of other pods might change that."""

    reasons: tuple[str, ...]
    resolvable: bool = True


class Unschedulable(Exception):
    """No node will do; the message tells the user why."""

    is_early = True
    """Whether a filter before the one on devices says so: kube-scheduler then ends in an error of its own."""


class FilterFailed(Exception):
    """A filter cannot tell, because what it looks at is wrong; nothing is decided for the pod."""

    def __init__(self, filter_name: str, message: str) -> None:
        super().__init__(f'running "{filter_name}" filter plugin: {message}')


Judge = Callable[[NodeInfo], Verdict | None]
Filter = Callable[[PodInfo, ClusterView], Judge | None]
