"""An answer that is arriving, whatever carries it: a connection of its own, or a stream among others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

from pilothouse.net.client.head import ReplyHead
from pilothouse.net.request_body import RequestBody, Trailers


class ReplySource(Protocol):
    """What an answer needs of whatever carries it."""

    def carries(self, reply: Reply) -> bool:
        """Whether an answer is still being received."""

    async def settle(self) -> None:
        """The present answer is done with, though not complete."""

    def drop(self) -> None:
        """The same, without waiting for anything."""

    def hand_over(self, protocol: asyncio.Protocol) -> tuple[asyncio.Transport, bytes]:
        """Give up the connection after a 101: it belongs to ``protocol``, and so do the bytes that came already."""


class _NothingMore:
    """Stands where a connection would, for a body that is all here."""

    def continue_reading(self) -> None:
        """Nobody waits for anything."""


_NOTHING_MORE: Final = _NothingMore()


class Reply:
    """An answer whose body may still be arriving. Closed by whoever got it.

    ``whole`` is the body of one that came in a piece, as most short ones do: nobody has to read those.
    """

    __slots__ = ("_body", "_source", "head", "status", "whole")

    def __init__(
        self, source: ReplySource, head: ReplyHead, body: RequestBody | None, whole: bytes | None = None
    ) -> None:
        """Either the body or the whole of it is given."""
        self._source, self._body = source, body
        self.head, self.status = head, head.status
        self.whole = whole

    @property
    def body(self) -> RequestBody:
        """The body as it is read."""
        body = self._body
        if body is None:
            body = self._body = RequestBody(_NOTHING_MORE, self.head.length)
            body.feed(self.whole or b"", True)
        return body

    @property
    def is_complete(self) -> bool:
        """Whether the whole body is here."""
        return self.body.complete

    @property
    def trailers(self) -> Trailers:
        """What came after the body, once that is complete."""
        return self.body.trailers

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises BodyTooLarge and OutgoingError."""
        return await self.body.read(limit)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises OutgoingError where it breaks off."""
        async for piece in self.body.pieces():
            yield piece

    def take_over(self, protocol: asyncio.Protocol) -> tuple[asyncio.Transport, bytes]:
        """After a 101: the connection, from now on told to ``protocol``, and what came on it already."""
        return self._source.hand_over(protocol)

    async def close(self) -> None:
        """Done with this answer, however much of it was read: what is not complete is given up."""
        if self._source.carries(self):
            await self._source.settle()

    async def abort(self) -> None:
        """The same; for a 101 too, which is never complete."""
        await self.close()

    def drop(self) -> None:
        """The same, at once."""
        if self._source.carries(self):
            self._source.drop()
