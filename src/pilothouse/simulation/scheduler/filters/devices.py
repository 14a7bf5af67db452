"""The filter on devices: are those of the pod's claims usable on the node, or can they be had there?"""

from __future__ import annotations

from typing import Final

from pilothouse.simulation.scheduler.cluster_view import ClusterView
from pilothouse.simulation.scheduler.devices.allocator import NodeFailed
from pilothouse.simulation.scheduler.devices.claims import plan_for, uses_devices
from pilothouse.simulation.scheduler.devices.requests import AllocationFailed
from pilothouse.simulation.scheduler.filters.verdict import FilterFailed, Judge, Verdict
from pilothouse.simulation.scheduler.pod_info import PodInfo
from pilothouse.simulation.scheduler.snapshot import NodeInfo

NOT_HERE: Final = Verdict(("resourceclaim not available on the node",), resolvable=False)
STALE: Final = Verdict(("cannot schedule extended resource claim",), resolvable=False)
_NONE_LEFT: Final = Verdict(("cannot allocate all claims",), resolvable=False)


def dynamic_resources(pod: PodInfo, cluster: ClusterView) -> Judge | None:
    """Allocated claims must be usable on the node; others, and extended resources, must find their devices there."""
    if not uses_devices(pod):
        return None
    try:
        plan = plan_for(pod, cluster)
    except AllocationFailed as error:
        raise FilterFailed("DynamicResources", str(error)) from None

    if plan.is_empty:
        return None
    if plan.extended.stale is not None:
        return lambda info: STALE

    def judge(info: NodeInfo) -> Verdict | None:
        unavailable = plan.unavailable(info)
        try:
            if plan.choose(info) is None:
                return _NONE_LEFT
        except NodeFailed as error:
            return Verdict((str(error),), resolvable=False)
        except AllocationFailed as error:
            raise FilterFailed("DynamicResources", str(error)) from None
        return NOT_HERE if unavailable else None

    return judge
