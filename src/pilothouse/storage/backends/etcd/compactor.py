"""Compaction in turns with all other API servers on the same etcd, kube-apiserver included.

The key ``compact_rev_key`` is the agreement: how often it was written is the time of a clock that each server advances
only if nobody else has since it last looked. Who advances it compacts what it saw one interval ago; so history of at
least one interval is kept, whoever comes and goes.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from pilothouse.storage.backends.contract import Unavailable
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.errors import COMPACTED, CallFailed
from pilothouse.storage.backends.etcd.messages import compact_request, put_at_version_request, read_txn

logger = logging.getLogger(__name__)
COMPACT_KEY: Final = b"compact_rev_key"
_SHORTEST: Final = 1.0
"""Between turns where the interval is negative: kube-apiserver compacts without a pause then."""


class Compactor:
    """One server's part in the agreement."""

    def __init__(self, connection: Connection, interval: float) -> None:
        self._connection, self._interval = connection, interval if interval > 0 else _SHORTEST
        self._time = self._revision = 0

    async def run(self) -> None:
        """Take part for ever."""
        while True:
            await asyncio.sleep(self._interval)
            try:
                await self.take_turn()
            except (CallFailed, Unavailable) as error:
                logger.error("etcd: endpoint (%s) compact failed: %s", ", ".join(self._connection.servers), error)

    async def take_turn(self) -> int:
        """Compact if it is this server's turn; gives the revision compacted at, 0 for none."""
        request = put_at_version_request(COMPACT_KEY, b"%d" % self._revision, self._time)
        answer = read_txn(await self._connection.write("KV/Txn", request))
        seen, self._revision = self._revision, answer.revision
        if not answer.succeeded:
            self._time = answer.version
            return 0
        self._time += 1
        if seen:
            await compact(self._connection, seen)
        return seen


async def compact(connection: Connection, revision: int) -> None:
    """Forget what was superseded; a revision compacted already is no failure. Raises CallFailed."""
    try:
        await connection.write("KV/Compact", compact_request(revision))
    except CallFailed as error:
        if error.details != COMPACTED:
            raise
