"""What makes a cluster move, where the flags want it: controllers, the scheduler, simulated nodes.

Controllers and scheduler wait until all hooks have run: before, the roles by which they may act are not there.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor


def controllers(context: HookContext) -> Iterator[PostStartHook]:
    """The controllers of kube-controller-manager, of which one process acts."""
    living = context.options.living
    rows = living.rows()
    if not rows:
        return
    from pilothouse.controllers.manager.context import ControllerContext
    from pilothouse.controllers.manager.controller_manager import ControllerManager

    key_file = context.options.control_plane.service_account_signing_key_file
    settings = living.manager_settings(context.options.derived.service_ranges, key_file)
    manager: ControllerManager | None = None

    async def start(supervisor: Supervisor) -> None:
        nonlocal manager
        made = ControllerContext(
            context.informers, context.clients, supervisor, context.clock, settings, served=context.served
        )
        manager = ControllerManager(made, rows, _identity(), wait_for=context.lifecycle.ready)
        manager.start()

    async def stop() -> None:
        if manager is not None:
            await manager.stop()

    yield PostStartHook(
        "start-kube-controller-manager-controllers",
        f"{len(rows)} controllers, while this process leads",
        start,
        lambda: "" if manager is None else manager.error(),
        ("stop-kube-controller-manager-controllers", stop),
    )


def scheduler(context: HookContext) -> Iterator[PostStartHook]:
    """The scheduler, of which one process acts."""
    if not context.options.living.scheduler:
        return
    from pilothouse.controllers.runtime.leader_lease import LeaderLease
    from pilothouse.simulation.scheduler.scheduler import Scheduler

    client = context.clients.scheduler()
    leases, ready = client.of("coordination.k8s.io", "v1", "leases"), context.lifecycle.ready
    lease = LeaderLease(leases, "kube-system", "kube-scheduler", _identity(), wait_for=ready)

    async def lead(supervisor: Supervisor) -> None:
        names, host = context.options.living.scheduler_names, socket.gethostname()
        Scheduler(client, context.informers, supervisor, names=names, instance=host, clock=context.clock).start()

    async def start(supervisor: Supervisor) -> None:
        lease.start(supervisor, lead)

    yield PostStartHook(
        "start-kube-scheduler",
        "the scheduler, while this process leads",
        start,
        before_shutdown=("stop-kube-scheduler", lease.stop),
    )


def simulated_nodes(context: HookContext) -> Iterator[PostStartHook]:
    """Nodes on which pods seem to run."""
    simulation = context.simulation
    if simulation is None:
        return
    from pilothouse.simulation.storage.storage import SimulatedStorage

    running: Supervisor | None = None

    async def start(supervisor: Supervisor) -> None:
        nonlocal running
        running = supervisor
        await simulation.start(context.clients, context.informers, supervisor, context.clock)
        await SimulatedStorage(context.clients, context.informers, supervisor, clock=context.clock).start()

    async def stop() -> None:
        """Before requests are drained: a thousand kubelets make more of them than all others."""
        if running is not None:
            await running.close(at_once=True)

    yield PostStartHook(
        "start-simulated-nodes",
        f"{simulation.settings.count} simulated nodes with storage",
        start,
        before_shutdown=("stop-simulated-nodes", stop),
    )


def _identity() -> str:
    return f"{socket.gethostname()}_{os.getpid()}"
