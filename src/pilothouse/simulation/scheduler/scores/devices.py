"""The score of devices: nodes where requests get what they would rather have are better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.devices.allocator import Choice
from pilothouse.simulation.scheduler.devices.claims import DevicePlan, plan_for, uses_devices
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.scores.score import share_of_most
from pilothouse.simulation.scheduler.snapshot import NodeInfo

_MOST_ALTERNATIVES: Final = 8


def dynamic_resources(pod: PodInfo, cluster: ClusterView, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
    """The earlier in a list of alternatives the one stands that the node has, the more points."""
    if not uses_devices(pod):
        return None
    plan = plan_for(pod, cluster)
    if not any(_has_alternatives(claim) for claim in plan.unallocated):
        return None
    return share_of_most([_points(plan, info) for info in nodes])


def _has_alternatives(claim: Object) -> bool:
    return any("firstAvailable" in each for each in (claim["spec"].get("devices") or {}).get("requests") or ())


def _points(plan: DevicePlan, info: NodeInfo) -> int:
    choices = plan.choose(info) or []
    return sum(_points_of(claim, choice) for claim, choice in zip(plan.wanted(info), choices, strict=False))


def _points_of(claim: Object, choice: Choice) -> int:
    points = 0
    for index, stated in enumerate(claim["spec"]["devices"]["requests"]):
        names = [each["name"] for each in stated.get("firstAvailable") or ()]
        if names:
            points += _MOST_ALTERNATIVES - names.index(choice.chosen[index].name)
    return points
