"""The two priority classes of system pods: created when missing, never changed."""

from __future__ import annotations

import asyncio

from pilothouse.controllers.own_objects import create_missing
from pilothouse.controlplane.bootstrap.static_objects import static_objects
from pilothouse.registry.store.store import Store


async def create_system_priority_classes(store: Store) -> None:
    """Create those that are missing."""
    await asyncio.gather(*(create_missing(store, wanted) for wanted in static_objects("priorityclasses")))
