"""The namespaces that every cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.runtime.controller import Periodic
from pilothouse.controlplane.bootstrap.namespaces import INTERVAL_SECONDS, create_system_namespaces
from pilothouse.machinery.supervision import Supervisor


def system_namespaces(context: HookContext) -> Iterator[PostStartHook]:
    """There when the hook is done, and made again should they go."""
    store = context.store("", "namespaces")

    async def keep() -> None:
        await create_system_namespaces(store)

    async def start(supervisor: Supervisor) -> None:
        await keep()
        Periodic("system namespaces", keep, INTERVAL_SECONDS, at_once=False).start(supervisor)

    yield PostStartHook("start-system-namespaces-controller", "the creation of system namespaces", start)
