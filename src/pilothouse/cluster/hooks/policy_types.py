"""Type checking of admission policies on a server without controllers; with them it is one of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controllers.policy_types import MANAGER, PolicyTypes
from pilothouse.machinery.supervision import Supervisor


def type_checking(context: HookContext) -> Iterator[PostStartHook]:
    """Only where the flags ask for it."""
    options = context.options
    if not options.own.check_policy_types or any(row.name == MANAGER for row in options.living.rows()):
        return

    async def start(supervisor: Supervisor) -> None:
        PolicyTypes(context.clients.controller(MANAGER), context.informers, context.served).start(supervisor)

    yield PostStartHook("start-policy-type-checking", "the type checking of admission policies", start)
