"""Repair of service addresses and node ports."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controlplane.bootstrap.service_repair import INTERVAL_SECONDS, ServiceRepair
from pilothouse.machinery.supervision import Supervisor


def repair(context: HookContext) -> Iterator[PostStartHook]:
    """Ports are put right before the server is ready; addresses when the kubernetes service has its own."""
    repair = ServiceRepair(
        context.store("", "services"),
        context.store("networking.k8s.io", "ipaddresses"),
        context.store("networking.k8s.io", "servicecidrs"),
        context.store("events.k8s.io", "events"),
        context.node_ports,
    )

    async def start(supervisor: Supervisor) -> None:
        await repair.repair_ports()
        ready = context.lifecycle.ready
        Periodic("service repair", repair.reconcile, INTERVAL_SECONDS, wait_for=ready).start(supervisor)

    yield PostStartHook("start-service-ip-repair-controllers", "the repair of addresses and node ports", start)
