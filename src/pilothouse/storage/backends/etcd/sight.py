"""What of an etcd this server may see: all its keys, or those below a prefix where etcd's own access rules say so.

Whoever sees all sees an event for every revision, so it is always known whether something is missing. Whoever shares
an etcd with others, each under a prefix, has to ask how far the watch is: revisions of others bring no event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pilothouse.storage.backends.contract import UnusableStore
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.errors import CallFailed
from pilothouse.storage.backends.etcd.messages import EVERYTHING, prefix_range, range_request

_DENIED: Final = "PERMISSION_DENIED"


@dataclass(frozen=True, slots=True)
class Sight:
    """A range of keys, and whether it is all there is."""

    key: bytes
    end: bytes
    whole: bool

    @property
    def nothing(self) -> bytes:
        """Reads nothing: a question for the newest revision. No object has this key, which is a prefix or none."""
        return range_request(self.key, keys_only=True)


ALL_KEYS: Final = Sight(EVERYTHING, EVERYTHING, whole=True)


async def find_sight(connection: Connection, prefix: str, *, asks_for_progress: bool) -> Sight:
    """What may be seen. Raises CallFailed, UnusableStore."""
    try:
        await connection.read("KV/Range", ALL_KEYS.nothing)
        return ALL_KEYS
    except CallFailed as error:
        if error.code != _DENIED or not prefix:
            raise
    sight = Sight(*prefix_range(prefix), whole=False)
    await connection.read("KV/Range", sight.nothing)
    if not asks_for_progress:
        raise UnusableStore("an etcd before 3.4.31 and 3.5.13 has to let the server read all keys, not only its own")
    return sight
