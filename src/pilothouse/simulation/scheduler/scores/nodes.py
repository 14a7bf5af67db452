"""Scores by taints, preferred node affinity, free resources, their balance, and images that are there already.

Nodes of a cluster are often alike and equally full: what follows from the same numbers is worked out once a pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from pilothouse.controllers.runtime.node_selection import PREFER_NO_SCHEDULE, matching_term
from pilothouse.controllers.runtime.tolerations import tolerates
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.requests import CPU, MEMORY
from pilothouse.simulation.scheduler.scores.score import BEST, share_of_most
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_LEAST_IMAGE: Final = 23 * 1024 * 1024
_MOST_IMAGE: Final = 1000 * 1024 * 1024


def taint_toleration(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The fewer untolerated taints that only prefer other pods, the better."""
    tolerations = [
        each for each in pod.spec.get("tolerations") or () if each.get("effect") in (None, "", PREFER_NO_SCHEDULE)
    ]
    if not any(info.taints for info in nodes):
        return None
    counts = [
        sum(
            1
            for taint in info.taints
            if taint["effect"] == PREFER_NO_SCHEDULE and not any(tolerates(each, taint) for each in tolerations)
        )
        for info in nodes
    ]
    return share_of_most(counts, reverse=True) if any(counts) else None


def node_affinity(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The sum of the weights of preferred terms that mean the node."""
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    terms = [(matching_term(each["preference"]), each["weight"]) for each in preferred if each["weight"]]
    if not terms:
        return None
    return share_of_most([sum(weight for test, weight in terms if test(info)) for info in nodes])


def least_allocated(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The more CPU and memory would be left, the better."""
    cpu, memory = pod.assumed

    @cache
    def score(used_cpu: int, all_cpu: int, used_memory: int, all_memory: int) -> int:
        pairs = ((used_cpu + cpu, all_cpu), (used_memory + memory, all_memory))
        shares = [_free_share(requested, capacity) for requested, capacity in pairs if capacity]
        return sum(shares) // len(shares) if shares else 0

    return [score(info.assumed_cpu, info.all_cpu, info.assumed_memory, info.all_memory) for info in nodes]


def _free_share(requested: int, capacity: int) -> int:
    return 0 if requested > capacity else (capacity - requested) * BEST // capacity


def balanced_allocation(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The more alike the shares of CPU and memory would be used, and the more that improves, the better."""
    if not pod.requests:
        return None  # pods that ask for nothing change no balance
    cpu, memory = pod.requests.get(CPU, 0), pod.requests.get(MEMORY, 0)

    @cache
    def score(used_cpu: int, all_cpu: int, used_memory: int, all_memory: int) -> int:
        after = _balance(used_cpu + cpu, all_cpu, used_memory + memory, all_memory)
        before = _balance(used_cpu, all_cpu, used_memory, all_memory)
        return BEST // 2 + int((BEST // 2 + after - before) / 2)

    return [
        score(info.requested.get(CPU, 0), info.all_cpu, info.requested.get(MEMORY, 0), info.all_memory)
        for info in nodes
    ]


def _balance(cpu: int, all_cpu: int, memory: int, all_memory: int) -> int:
    shares = [min(1.0, used / capacity) for used, capacity in ((cpu, all_cpu), (memory, all_memory)) if capacity]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * BEST)


def image_locality(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The more of the pod's images are on the node already, the better; images on many nodes count more."""
    if not cluster.snapshot.has_images:
        return None
    containers = [*(pod.spec.get("initContainers") or ()), *pod.spec["containers"]]
    names = [_with_tag(each.get("image") or "") for each in containers]
    every = cluster.snapshot.nodes
    spread = {name: sum(1 for info in every if name in info.images) / len(every) for name in set(names)}
    most = _MOST_IMAGE * len(containers)

    def score(info: NodeInfo) -> int:
        total = sum(int(info.images[name] * spread[name]) for name in names if name in info.images)
        return BEST * (min(max(total, _LEAST_IMAGE), most) - _LEAST_IMAGE) // (most - _LEAST_IMAGE)

    return [score(info) for info in nodes]


def _with_tag(image: str) -> str:
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
