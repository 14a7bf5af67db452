"""Leases by which the API servers of one cluster know of each other: kept in storage, gone when not renewed.

Not objects that clients see, but shaped like Endpoints, at the keys kube-apiserver uses, so that both can run side by
side on one store:

    <root>/masterleases/<address>       the servers that answer for the ``kubernetes`` service
    <root>/peerserverleases/<identity>  where the server of an identity can be reached by its peers
"""

from __future__ import annotations

from typing import Final

import orjson

from pilothouse.machinery.objects import Object
from pilothouse.registry.store.codec import ObjectCodec
from pilothouse.storage.backends.contract import Conflict, KeyExists
from pilothouse.storage.cacher import Cacher, Entry

TTL_SECONDS: Final = 15
RENEW_SECONDS: Final = 10.0
IDENTITY_LABEL: Final = "apiserverIdentity"


class AddressLeases:
    """The leases below one prefix."""

    def __init__(self, cacher: Cacher, prefix: str, codec: ObjectCodec, ttl_seconds: int = TTL_SECONDS) -> None:
        """``codec`` is that of Endpoints."""
        self._prefix, self._codec = prefix, codec
        self._cache = cacher.resource(prefix, self._codec)
        self._ttl = ttl_seconds

    async def renew(self, name: str, subset: Object, labels: dict[str, str] | None = None) -> None:
        """Make a lease or let it live longer. Whoever else writes it at the same time is overtaken."""
        key = self._prefix + name
        await self._cache.wait_ready()
        while True:
            entry = self._cache.get(key)
            data = self._codec.encode(_lease(entry, subset, labels))
            try:
                if entry is None:
                    await self._cache.create(key, self._codec.to_stored(data), self._ttl)
                else:
                    await self._cache.update(key, self._codec.to_stored(data), entry.revision, self._ttl)
            except (KeyExists, Conflict):
                await self._cache.wait_fresh()
            else:
                return

    async def remove(self, name: str) -> bool:
        """End a lease; whether there was one."""
        key = self._prefix + name
        await self._cache.wait_fresh()
        while (entry := self._cache.get(key)) is not None:
            try:
                await self._cache.delete(key, entry.revision)
            except Conflict:
                await self._cache.wait_fresh()
            else:
                return True
        return False

    async def endpoint(self, name: str) -> tuple[str, int] | None:
        """Where the holder of a lease is reached; None without a lease, or one that does not say."""
        await self._cache.wait_fresh()
        entry = self._cache.get(self._prefix + name)
        if entry is None:
            return None
        lease = orjson.loads(entry.data)
        host = _address(lease)
        ports = [port["port"] for subset in (lease.get("subsets") or ())[:1] for port in subset.get("ports") or ()]
        return (host, ports[0]) if host and ports else None

    async def addresses(self) -> list[str]:
        """The addresses of all who hold a lease, by key."""
        await self._cache.wait_fresh()
        found = (_address(orjson.loads(entry.data)) for entry in self._cache.entries())
        return [address for address in found if address]


def _lease(entry: Entry | None, subset: Object, labels: dict[str, str] | None) -> Object:
    """The next state of a lease. The generation changes every time, or nothing would be written."""
    metadata: Object = orjson.loads(entry.data)["metadata"] if entry is not None else {}
    metadata["generation"] = metadata.get("generation", 0) + 1
    if labels:
        metadata["labels"] = labels
    return {"metadata": metadata, "subsets": [subset]}


def _address(lease: Object) -> str:
    for subset in (lease.get("subsets") or ())[:1]:
        for address in (subset.get("addresses") or ())[:1]:
            return str(address.get("ip", ""))
    return ""
