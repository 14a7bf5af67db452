"""The namespaces that every cluster has. They come back when somebody removes them, within a minute."""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.controllers.own_objects import create_missing
from pilothouse.registry.store.store import Store

SYSTEM_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
INTERVAL_SECONDS: Final = 60.0


async def create_system_namespaces(store: Store) -> None:
    """Create those that are missing."""
    await asyncio.gather(
        *(create_missing(store, {"metadata": {"name": name}, "spec": {}, "status": {}}) for name in SYSTEM_NAMESPACES)
    )
