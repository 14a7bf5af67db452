"""What a score is: it looks at the pod, the cluster and the nodes that are left, and gives each a number up to 100.

A score that has nothing to say about the pod says None, and counts for no node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

BEST: Final = 100
Score = Callable[[PodInfo, ClusterView, Sequence[NodeInfo]], Sequence[int] | None]


def share_of_most(values: Sequence[int], *, reverse: bool = False) -> list[int]:
    """Values scaled so that the greatest becomes the best, or the worst."""
    most = max(values, default=0)
    if most == 0:
        return [BEST if reverse else 0 for _ in values]
    scaled = [BEST * value // most for value in values]
    return [BEST - value for value in scaled] if reverse else scaled
