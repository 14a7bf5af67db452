"""The store: it can be read, and its caches follow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.machinery.supervision import Supervisor

logger = logging.getLogger(__name__)


def object_counts(context: HookContext) -> Iterator[PostStartHook]:
    """Caches know their size for as long as they follow the store."""

    async def start(supervisor: Supervisor) -> None:
        context.stack.cacher.require_open()

    yield PostStartHook(
        "storage-object-count-tracker-hook",
        "the watch caches, which follow the store",
        start,
        context.caches_error,
    )


def readiness(context: HookContext) -> Iterator[PostStartHook]:
    """Done when the store has answered, or has had its time to do so; caches load when they are first used."""
    seconds = context.options.generic.storage_initialization_timeout

    async def start(supervisor: Supervisor) -> None:
        try:
            async with asyncio.timeout(seconds):
                await context.stack.backend.current_revision()
        except TimeoutError:
            logger.warning("the store has not answered within --storage-initialization-timeout: it is not waited for")

    yield PostStartHook("storage-readiness", "an answer of the store", start, context.stack.readiness_error)
