"""Priority and fairness: the objects a fresh cluster has, and what becomes of those that are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controlplane.bootstrap.flow_control import INTERVAL_SECONDS, ensure_flow_control
from pilothouse.controlplane.bootstrap.flow_control_consumer import FlowControlConsumer
from pilothouse.flowcontrol.controller import ADJUST_SECONDS
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery.supervision import Supervisor

_GROUP: Final = "flowcontrol.apiserver.k8s.io"


def consumer(context: HookContext) -> Iterator[PostStartHook]:
    """Takes flow schemas and priority levels into use, and tells schemas what is wrong with them."""
    controller = context.flow_control

    async def nothing_to_keep_up(supervisor: Supervisor) -> None:
        """What is shown of the filters is made when it is asked for."""

    if isinstance(controller, MaxInFlight):
        yield PostStartHook("max-in-flight-filter", "the filter itself, which needs no upkeep", nothing_to_keep_up)
        return

    async def adjust() -> None:
        controller.adjust()

    async def start(supervisor: Supervisor) -> None:
        schemas, levels = context.store(_GROUP, "flowschemas"), context.store(_GROUP, "prioritylevelconfigurations")
        await FlowControlConsumer(schemas, levels, context.informers, controller.configure).start(supervisor)
        Periodic("seats of priority levels", adjust, ADJUST_SECONDS, at_once=False).start(supervisor)

    yield PostStartHook("priority-and-fairness-config-consumer", "flow schemas and priority levels in use", start)
    yield PostStartHook("priority-and-fairness-filter", "the filter itself, which needs no upkeep", nothing_to_keep_up)


def producer(context: HookContext) -> Iterator[PostStartHook]:
    """Keeps the mandatory and suggested objects as they should be."""
    if not context.serves(_GROUP):
        return
    stores = context.store(_GROUP, "flowschemas"), context.store(_GROUP, "prioritylevelconfigurations")

    async def keep() -> None:
        await ensure_flow_control(*stores)

    async def start(supervisor: Supervisor) -> None:
        await keep()
        Periodic("flow control", keep, INTERVAL_SECONDS, at_once=False).start(supervisor)

    yield PostStartHook(
        "priority-and-fairness-config-producer", "mandatory and suggested flow schemas and priority levels", start
    )
