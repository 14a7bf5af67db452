"""The shared informers, which have begun before the server listens, because authorization decides by them."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor


def shared(context: HookContext) -> Iterator[PostStartHook]:
    """Done when all informers that anybody has asked for know their objects."""

    async def start(supervisor: Supervisor) -> None:
        await context.informers.wait_synced()

    yield PostStartHook(
        "generic-apiserver-start-informers",
        "the shared informers and their handlers",
        start,
        lambda: "; ".join(context.informers.errors()),
    )
