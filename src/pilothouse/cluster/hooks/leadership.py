"""The election of leaders among those who say which versions they run, where that is on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor

GATE: Final = "CoordinatedLeaderElection"


def coordinated(context: HookContext) -> Iterator[PostStartHook]:
    """Elections, held by one of several servers."""
    if GATE not in context.storage.gates:
        return
    from pilothouse.controllers.coordinated_leadership import NAME, CoordinatedLeadership
    from pilothouse.controllers.runtime.leader_lease import LeaderLease

    client, times = context.clients.api_server(), context.options.control_plane.coordinated_leadership()
    leases = client.of("coordination.k8s.io", "v1", "leases")
    lease = LeaderLease(leases, "kube-system", NAME, f"{context.hostname}_{context.identity}", times=times)
    elections = CoordinatedLeadership(client, context.informers, context.clock)

    async def lead(supervisor: Supervisor) -> None:
        elections.start(supervisor)

    async def start(supervisor: Supervisor) -> None:
        lease.start(supervisor, lead)

    yield PostStartHook(
        "start-kube-apiserver-coordinated-leader-election-controller",
        "elections, while this process leads",
        start,
        before_shutdown=("stop-kube-apiserver-coordinated-leader-election-controller", lease.stop),
    )
