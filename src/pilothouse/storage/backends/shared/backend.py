"""The contract for a process that follows: every call goes to the owner of the log, and the feed comes from there.

How far the log is, is the question of every read that wants the newest. Where the owner's store shows its revision in
memory that all processes see (``Newest``), the question costs no message: a follower that has received what is shown
there has everything that anybody was told is written. What is shown and has not arrived is on its way, and is waited
for; if it does not come soon it was written by somebody who is not the owner, and the owner is asked to look, once for
all who wait.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from pilothouse.net.eager import Prompt
from pilothouse.net.message_channel import MessageChannel
from pilothouse.storage.backends.contract import (
    Event,
    Follower,
    FutureRevision,
    History,
    KeyValue,
    Page,
    Unavailable,
)
from pilothouse.storage.backends.live_feeds import LiveFeed, LiveFeeds
from pilothouse.storage.backends.rounds import SharedRounds
from pilothouse.storage.backends.shared.messages import (
    BROKEN,
    FEED,
    HELLO,
    unpack_error,
    unpack_history,
    unpack_key_value,
    unpack_page,
)
from pilothouse.storage.backends.watching import watch_log
from pilothouse.storage.progress import Progress

_ARRIVAL_SECONDS: Final = 0.02
_GONE: Final = "the process that keeps the store has gone"


class Newest(Protocol):
    """Sees what the store shows of itself, without waiting."""

    def newest_foreign(self) -> int:
        """The newest revision that anybody may have been told of."""

    def close(self) -> None:
        """Look no more."""


class SharedBackend:
    """The log of another process. See `contract.Backend` for what each method promises."""

    name = "shared"

    def __init__(
        self,
        connect: Callable[[], Awaitable[socket.socket]],
        look: Callable[[], Newest] | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        """``connect`` gives the socket to the owner, ``look`` what sees its newest revision, once the store is open.

        ``on_lost`` is told when the owner has gone; nothing can be done here from then on.
        """
        self._connect, self._look, self._on_lost = connect, look, on_lost
        self._channel: MessageChannel | None = None
        self._newest: Newest | None = None
        self._progress = Progress()
        self._greeted: asyncio.Future[None] | None = None
        self._feeds = LiveFeeds("the shared store")
        self._number = 0
        self._calls: dict[int, Prompt[Any]] = {}
        self._writes: dict[int, tuple[str, bytes | None, object]] = {}
        self._revisions = SharedRounds(self._ask_revision)

    @property
    def is_open(self) -> bool:
        return self._channel is not None and self._channel.is_open

    async def open(self) -> None:
        """Wait until the owner has opened the store. Raises Unavailable."""
        self._greeted = asyncio.get_running_loop().create_future()
        self._channel = MessageChannel(self._take, self._lost)
        try:
            await self._channel.start(await self._connect())
        except OSError as error:
            raise Unavailable(f"the process that keeps the store cannot be reached: {error}") from None
        await self._greeted
        if self._look is not None:
            self._newest = await asyncio.to_thread(self._look)

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is None:
            return
        channel.close()
        self._fail(Unavailable("the connection to the store is closed"))
        if self._newest is not None:
            self._newest.close()
            self._newest = None

    # Writing

    async def create(self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None) -> int:
        return await self._write(key, value, origin, "create", key, value, ttl_seconds)

    async def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> int:
        return await self._write(key, value, origin, "update", key, value, expected, ttl_seconds)

    async def delete(self, key: str, expected: int, origin: object = None) -> int:
        return await self._write(key, None, origin, "delete", key, expected)

    async def _write(self, key: str, value: bytes | None, origin: object, *call: Any) -> int:
        answer = self._call(*call)
        self._writes[self._number] = key, value, origin
        try:
            revision: int = await answer
        finally:
            del answer  # it has the error, whose traceback has this frame and all before it
        return revision

    # Reading

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return unpack_key_value(await self._call("get", key, revision))

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        return unpack_page(await self._call("list", prefix, start, limit, revision, counted))

    async def count(self, prefix: str) -> int:
        found: int = await self._call("count", prefix)
        return found

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        return unpack_history(await self._call("history", prefix, after, limit))

    # Following

    def follow(self, follower: Follower) -> LiveFeed:
        self._require_channel()
        return self._feeds.add(follower, self._progress.revision)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
        return watch_log(self, prefix, after)

    async def current_revision(self) -> int:
        self._require_channel()
        if self._newest is not None:
            try:
                await self._progress.reach(self._newest.newest_foreign(), _ARRIVAL_SECONDS)
            except FutureRevision:
                return await self._revisions.get()
            return self._progress.revision
        return await self._revisions.get()

    def foresee(self) -> None:
        return None

    def unseen_revision(self) -> int | None:
        self._require_channel()
        return None if self._newest is None else self._newest.newest_foreign()

    async def compact(self, revision: int) -> None:
        await self._call("compact", revision)

    async def compacted_revision(self) -> int:
        found: int = await self._call("compacted_revision")
        return found

    # Inside

    async def _ask_revision(self) -> int:
        revision: int = await self._call("current_revision")
        await self._progress.reach(revision)
        return revision

    def _call(self, *call: Any) -> Prompt[Any]:
        channel = self._require_channel()
        self._number += 1
        future: Prompt[Any] = Prompt()
        self._calls[self._number] = future
        channel.send((self._number, *call))
        return future

    def _require_channel(self) -> MessageChannel:
        if self._channel is None:
            raise Unavailable("the connection to the store is closed")
        if not self._channel.is_open:
            raise Unavailable(_GONE)
        return self._channel

    def _take(self, message: tuple[Any, ...]) -> None:
        kind = message[0]
        if kind > 0:
            self._take_answer(*message)
        elif kind == FEED:
            _, revision, events = message
            self._deliver([self._event(*event) for event in events], revision)
        elif kind == BROKEN:
            self._feeds.fail(unpack_error(message[1]))
        elif kind == HELLO:
            self._progress.advance(message[1])
            if self._greeted is not None and not self._greeted.done():
                self._greeted.set_result(None)

    def _take_answer(self, number: int, succeeded: bool, result: Any) -> None:
        self._writes.pop(number, None)
        future = self._calls.pop(number)
        if succeeded:
            future.settle(result)
        else:
            future.refuse(unpack_error(result))

    def _event(self, key: str, revision: int, value: bytes | None, created: bool, number: int) -> Event:
        if not number:
            return Event(key, revision, value, created)
        key, value, origin = self._writes[number]
        return Event(key, revision, value, created, None, origin)

    def _deliver(self, events: Sequence[Event], revision: int) -> None:
        self._feeds.deliver(events, revision)
        self._progress.advance(revision)

    def _lost(self) -> None:
        """The owner has gone, or we have closed the channel ourselves."""
        if self._channel is not None:
            self._fail(Unavailable(_GONE))
            self._on_lost()

    def _fail(self, error: Unavailable) -> None:
        calls, self._calls = self._calls, {}
        self._writes.clear()
        for future in calls.values():
            if not future.done():
                future.refuse(error)
                future.exception()  # whoever waited may have gone
        if self._greeted is not None and not self._greeted.done():
            self._greeted.set_exception(error)
        self._revisions.close(error)
        self._progress.fail(error)
        self._feeds.fail(error)
