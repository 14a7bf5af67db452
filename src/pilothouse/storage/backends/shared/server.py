"""The owner's side: serves the calls of one follower from the log that this process has, and feeds it every change.

The feed goes ahead of the answers. The backend hands an event to its followers before it tells the writer, and the
channel keeps the order: so whoever gets the answer to a write has received the write itself, and everything before it.

A follower that does not read is not waited for. What it leaves unread is kept up to a limit; then the channel is cut,
and its process, which can do nothing without it, is replaced by whoever looks after it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from pilothouse.net import eager
from pilothouse.net.message_channel import MessageChannel, encode_message
from pilothouse.storage.backends.contract import Backend, Compacted, Event, Feed, StorageError
from pilothouse.storage.backends.shared.messages import (
    BROKEN,
    FEED,
    HELLO,
    pack_error,
    pack_events,
    pack_history,
    pack_key_value,
    pack_page,
)

logger = logging.getLogger(__name__)
_MOST_UNREAD: Final = 256 << 20

Method = Callable[..., Awaitable[Any]]


class _Origin:
    """Travels with a write as its origin: which call of which follower it is."""

    __slots__ = ("number", "server")

    def __init__(self, server: LogServer, number: int) -> None:
        self.server, self.number = server, number


class FeedEncoding:
    """Encodes each batch of the feed once for all followers that wrote nothing in it."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[Event], bytes] | None = None

    def encode(self, events: Sequence[Event], revision: int) -> bytes:
        """The batch as it travels."""
        if self._last is None or self._last[0] is not events:
            self._last = events, encode_message((FEED, revision, pack_events(events)))
        return self._last[1]


class LogServer:
    """Serves one follower from ``start`` on until either side ends. The backend is open, and of this loop."""

    def __init__(self, backend: Backend, encoding: FeedEncoding | None = None) -> None:
        """Servers of several followers of one backend share an ``encoding``."""
        self._backend, self._encoding = backend, encoding or FeedEncoding()
        self._loop = asyncio.get_running_loop()
        self._channel = MessageChannel(self._take_call, self.close)
        self._feed: Feed | None = None
        self._waiting: set[eager.Suspended[None]] = set()
        self._writing: dict[str, Method] = {
            "create": backend.create,
            "update": backend.update,
            "delete": backend.delete,
        }
        self._reading: dict[str, Method] = {
            "get": self._get,
            "list": self._list,
            "count": backend.count,
            "history": self._history,
            "current_revision": backend.current_revision,
            "compact": backend.compact,
            "compacted_revision": backend.compacted_revision,
        }

    async def start(self, sock: socket.socket) -> None:
        """Speak through a connected socket."""
        await self._channel.start(sock)
        self._follow()

    def close(self) -> None:
        """Cut the channel. Writes that were accepted are carried out all the same."""
        self._channel.abort()
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        for waiting in list(self._waiting):
            waiting.cancel()

    # The feed

    def _follow(self) -> None:
        self._feed = self._backend.follow(self)
        self._channel.send((HELLO, self._feed.revision))

    def receive(self, events: Sequence[Event], revision: int) -> None:
        """Pass on changes; called by the backend."""
        channel = self._channel
        if channel.backlog > _MOST_UNREAD:
            logger.error("a follower of the store leaves %d bytes unread: its channel is cut", channel.backlog)
            self.close()
        elif any(isinstance(event.origin, _Origin) and event.origin.server is self for event in events):
            channel.send((FEED, revision, [self._own(event) for event in events]))
        else:
            channel.send_encoded(self._encoding.encode(events, revision))

    def fail(self, error: StorageError) -> None:
        """The feed of the backend is broken; one that lost its place can be taken up again."""
        self._feed = None
        self._channel.send((BROKEN, pack_error(error)))
        if isinstance(error, Compacted):
            self._follow()

    def _own(self, event: Event) -> tuple[Any, ...]:
        origin = event.origin
        if isinstance(origin, _Origin) and origin.server is self:
            return None, event.revision, None, event.created, origin.number
        return event.key, event.revision, event.value, event.created, 0

    # Calls

    def _take_call(self, call: tuple[Any, ...]) -> None:
        number, name, *arguments = call
        method = self._writing.get(name)
        if method is None:
            method = self._reading[name]
        else:
            arguments.append(_Origin(self, number))
        waiting = eager.start(self._serve(number, method, arguments), self._loop, _ignore, _ignore)
        if waiting is not None:
            self._waiting.add(waiting)
            waiting.when_over(self._waiting.discard)

    async def _serve(self, number: int, method: Method, arguments: list[Any]) -> None:
        try:
            result = await method(*arguments)
        except Exception as error:
            if not isinstance(error, StorageError):
                logger.exception("a call of a follower of the store failed")
            self._channel.send((number, False, pack_error(error)))
        else:
            self._channel.send((number, True, result))

    async def _get(self, key: str, revision: int) -> Any:
        return pack_key_value(await self._backend.get(key, revision))

    async def _list(self, prefix: str, start: str | None, limit: int, revision: int, counted: bool) -> Any:
        page = await self._backend.list(prefix, start=start, limit=limit, revision=revision, counted=counted)
        return pack_page(page)

    async def _history(self, prefix: str, after: int, limit: int) -> Any:
        return pack_history(await self._backend.history(prefix, after, limit))


def _ignore(outcome: object) -> None:
    """Whoever called has been answered; or has gone, and the call was cancelled."""
