"""Streams of changes from etcd, whole revisions at a time.

A watch that shall give what happened after revision N begins *at* N and drops what it knows: etcd then refuses it
if anything after N has been compacted. Begun at N + 1 it would pass silently over deletions compacted at N + 1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from pilothouse.machinery.protobuf import ProtobufError
from pilothouse.net.grpc import RpcError, StreamCall
from pilothouse.storage.backends.contract import Compacted, Event
from pilothouse.storage.backends.etcd.connection import Connection, call_failed, opened_stream
from pilothouse.storage.backends.etcd.errors import COMPACTED, CallFailed
from pilothouse.storage.backends.etcd.messages import (
    PROGRESS_REQUEST,
    WatchAnswer,
    WatchedChange,
    has_only_known,
    range_request,
    read_watch,
    watch_request,
)

_METHOD = "Watch/Watch"


class WatchStream:
    """One watch on a stream of its own. Use `opened_watch`."""

    def __init__(self, stream: StreamCall, after: int) -> None:
        self._stream, self._after = stream, after

    async def next(self, known: Callable[[], int] = lambda: 0) -> WatchAnswer:
        """The next answer, fragments put together, without what is known already. Raises Compacted, CallFailed.

        Answers with nothing after the revision that is ``known`` when they are looked at are passed over unread.
        """
        data = await self._receive()
        while has_only_known(data, known()):
            data = await self._receive()
        answer = self._read(data)
        held: list[WatchedChange] = []
        while answer.fragment:
            held += answer.changes
            answer = self._read(await self._receive())
        answer.changes = [change for change in (*held, *answer.changes) if change.revision > self._after]
        return answer

    def request_progress(self) -> None:
        """Ask how far it is. Reliable from etcd 3.5.13 on, and answered only once the past has been delivered."""
        try:
            self._stream.write(PROGRESS_REQUEST)
        except RpcError as error:
            raise call_failed(error) from None

    def give_up(self, reason: str) -> None:
        """Let whoever waits for the next answer fail."""
        self._stream.cancel("UNAVAILABLE", reason)

    async def _receive(self) -> bytes:
        try:
            return await self._stream.read()
        except RpcError as error:
            raise call_failed(error) from None

    def _read(self, data: bytes) -> WatchAnswer:
        try:
            answer = read_watch(data)
        except ProtobufError as error:
            raise CallFailed("INTERNAL", str(error)) from None
        if answer.compacted:
            raise Compacted(self._after, answer.compacted)
        if answer.canceled:
            raise CallFailed("UNAVAILABLE", answer.reason or "the watch was cancelled")
        return answer


class opened_watch:  # noqa: N801 - used as a function
    """A watch of a range after a revision, cancelled when left."""

    def __init__(self, connection: Connection, key: bytes, end: bytes, after: int, *, previous: bool) -> None:
        request = watch_request(key, end, max(after, 1), previous=previous)
        self._opening = opened_stream(connection, _METHOD, request)
        self._after = after

    async def __aenter__(self) -> WatchStream:
        return WatchStream(await self._opening.__aenter__(), self._after)

    async def __aexit__(self, *_: object) -> None:
        await self._opening.__aexit__(None, None, None)


async def find_compacted(connection: Connection, key: bytes) -> int:
    """The revision of the last compaction, 0 without any: what etcd says to a watch of any key from the beginning."""
    try:
        await connection.read("KV/Range", range_request(key, revision=1, count_only=True))
    except CallFailed as error:
        if error.details != COMPACTED:
            raise
    else:
        return 0
    async with opened_watch(connection, key, b"", 1, previous=False) as watch:
        while True:
            try:
                await watch.next()
            except Compacted as compacted:
                return compacted.compacted


async def watch_changes(connection: Connection, key: bytes, end: bytes, after: int) -> AsyncIterator[list[Event]]:
    """Batches of events after a revision, for ever, with the states before. Raises Compacted, CallFailed."""
    async with opened_watch(connection, key, end, after, previous=True) as watch:
        while True:
            answer = await watch.next()
            if answer.changes:
                yield [event_of(change) for change in answer.changes]


def event_of(change: WatchedChange, origin: object = None) -> Event:
    """The contract's form of a change."""
    return Event(change.key, change.revision, change.value, change.created, change.previous, origin)
