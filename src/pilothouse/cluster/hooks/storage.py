"""The store: it can be read, and its caches follow it."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor


def object_counts(context: HookContext) -> Iterator[PostStartHook]:
    """Caches know their size for as long as they follow the store."""
    cacher = context.stack.cacher

    async def start(supervisor: Supervisor) -> None:
        cacher.require_open()

    yield PostStartHook(
        "storage-object-count-tracker-hook",
        "the watch caches, which follow the store",
        start,
        lambda: "" if cacher.is_open else "the watch caches do not follow the store",
    )


def readiness(context: HookContext) -> Iterator[PostStartHook]:
    """Done when the store has answered; caches load when they are first used."""

    async def start(supervisor: Supervisor) -> None:
        await context.stack.backend.current_revision()

    yield PostStartHook("storage-readiness", "an answer of the store", start, context.stack.readiness_error)
