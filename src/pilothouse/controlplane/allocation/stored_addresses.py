"""IPAddresses and ServiceCIDRs in the server's own stores."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.controllers.own_objects import server_context
from pilothouse.controlplane.allocation.cluster_ips import ALLOCATOR, MANAGED_BY_LABEL
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store


class StoredAddresses:
    """The objects that cluster addresses are kept in. ServiceCIDRs are decoded when one of them has changed."""

    def __init__(self, addresses: Store, service_cidrs: Store) -> None:
        self._addresses = addresses
        self._service_cidrs = service_cidrs
        self._known: tuple[tuple[int, ...], list[Object]] = ((), [])

    async def ready(self) -> None:
        for cache in (self._addresses.cache, self._service_cidrs.cache):
            if not cache.ready:
                await cache.wait_ready()
            await cache.wait_fresh()

    def ranges(self) -> Sequence[Object]:
        entries = self._service_cidrs.cache.entries()
        revisions = tuple(entry.revision for entry in entries)
        if self._known[0] != revisions:
            self._known = revisions, [self._service_cidrs.decode(entry) for entry in entries]
        return self._known[1]

    def is_taken(self, name: str) -> bool:
        return self._addresses.cache.get(self._addresses.key("", name)) is not None

    @property
    def revision(self) -> int:
        """Of the last change to any IPAddress."""
        return self._addresses.cache.changed_revision

    def names(self) -> list[str]:
        """The names of the IPAddresses that allocation made."""
        entries = self._addresses.cache.entries()
        return [entry.name for entry in entries if entry.labels.get(MANAGED_BY_LABEL) == ALLOCATOR]

    async def create(self, obj: Object) -> bool:
        try:
            await self._addresses.create(server_context(), obj)
        except errors.StatusError as error:
            if error.reason == "AlreadyExists":
                return False
            raise
        return True

    async def delete(self, name: str) -> None:
        try:
            await delete(self._addresses, server_context(verb="delete"), name, DeleteOptions())
        except errors.StatusError as error:
            if error.code != 404:
                raise
