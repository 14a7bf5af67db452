"""Custom resource definitions: their informer, and the controller that settles and serves them."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor


def controllers(context: HookContext) -> Iterator[PostStartHook]:
    """Three names for one informer and one controller."""
    custom = context.servers.custom
    informer = custom.informer

    async def synced(supervisor: Supervisor) -> None:
        await informer.wait_synced()

    def not_synced() -> str:
        return "" if informer.has_synced else "definitions are not known yet"

    what = "the informer of CustomResourceDefinitions"
    yield PostStartHook("start-apiextensions-informers", what, synced, informer.errors)
    yield PostStartHook("start-apiextensions-controllers", "the controller of CustomResourceDefinitions", custom.start)
    yield PostStartHook("crd-informer-synced", what, synced, not_synced)
