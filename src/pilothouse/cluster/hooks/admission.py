"""Admission decides by objects of others: what its plug-ins read must be loaded."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor


def initializer(context: HookContext) -> Iterator[PostStartHook]:
    """Done when every plug-in could decide at once."""

    async def start(supervisor: Supervisor) -> None:
        await context.admission.wait_ready()

    yield PostStartHook(
        "start-apiserver-admission-initializer",
        "caches of the objects that admission plug-ins decide by",
        start,
        context.caches_error,
    )
