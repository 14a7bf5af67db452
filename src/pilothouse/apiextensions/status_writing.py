"""Writing the status of definitions as the server itself, with its own entry in managedFields."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.controllers.own_objects import OWN_MANAGER, server_context
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.endpoints.installer import make_field_manager
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.registry.store.store import Store

Change = Callable[[Object], object]


class StatusWriter:
    """Changes definitions through their status. A definition that has gone meanwhile is left alone."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._strategy = store.strategy.subresource("status")
        self._fields = make_field_manager(store.resource, "status", self._strategy)

    async def write(self, name: str, change: Change) -> None:
        """Change the stored definition in place; it is tried again when others write meanwhile."""
        ctx = server_context("", "update", "status")

        async def changed(old: Object | None) -> Object:
            wanted: Object = await weighed(ctx.weight, copy_of, old)
            change(wanted)
            return await weighed(ctx.weight, self._fields.update, old, wanted, OWN_MANAGER, ctx.now)

        try:
            await self._store.update(ctx, name, changed, strategy=self._strategy, create=False)
        except errors.StatusError as error:
            if error.code not in (404, 409):
                raise
