"""One call each: what its stream of HTTP/2 brings, put together to messages.

A message is a byte (0: not compressed), four bytes of length, and that many bytes.

Received bytes are given back to the window of their stream when they have been read; those of a message that is not
complete at once, because nobody could read them and so it would never become complete.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

from pilothouse.net.eager import Prompt
from pilothouse.net.grpc.failures import RpcError, ended
from pilothouse.net.http2.hpack import Field

WINDOW: Final = 1 << 20
"""How much a server may send of one stream before it is told that there is room again."""
_HEAD: Final = 5


def framed(message: bytes) -> bytes:
    """A message as it is sent."""
    return b"".join((b"\0", len(message).to_bytes(4, "big"), message))


class Call(ABC):
    """What the connection knows of a call: the room for sending, what waits for it, and where received things go."""

    __slots__ = ("deadline", "number", "outgoing", "returned", "window")

    def __init__(self, deadline: float = inf) -> None:
        self.deadline = deadline
        """By the loop's clock, when it is given up."""
        self.number = 0
        self.window = 0
        """How much may be sent."""
        self.outgoing = memoryview(b"")
        """What is not sent yet: a view, of which the rest is no copy."""
        self.returned = 0
        """Received bytes of which the server has not been told that there is room again."""

    @property
    @abstractmethod
    def ends_by_itself(self) -> bool:
        """Whether the last of `outgoing` is the last message."""

    @abstractmethod
    def take_headers(self, fields: list[Field], end: bool) -> None:
        """Headers, or trailers at the end."""

    @abstractmethod
    def take_data(self, data: bytes, end: bool) -> bool:
        """A piece of messages; tells whether its bytes may be given back to the window at once."""

    @abstractmethod
    def fail(self, error: RpcError) -> None:
        """There will be no more."""


class UnaryCall(Call):
    """One message there, one back."""

    __slots__ = ("_pieces", "answer")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        super().__init__(loop.time() + seconds)
        self.answer: Prompt[bytes] = Prompt(loop=loop)
        self._pieces: list[bytes] = []

    @property
    def ends_by_itself(self) -> bool:
        return True

    def take_headers(self, fields: list[Field], end: bool) -> None:
        if not end or self.answer.done():
            return
        error = ended(fields)
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        if error is None and (len(data) < _HEAD or data[0] or int.from_bytes(data[1:5], "big") != len(data) - _HEAD):
            error = RpcError("INTERNAL", "the answer is not one plain message")
        if error is not None:
            self.answer.refuse(error)
        else:
            self.answer.settle(data[_HEAD:])

    def take_data(self, data: bytes, end: bool) -> bool:
        self._pieces.append(data)
        if end:
            self.fail(RpcError("INTERNAL", "server closed the stream without sending trailers"))
        return True

    def fail(self, error: RpcError) -> None:
        self.answer.refuse(error)


class StreamCall(Call):
    """Messages in both directions for as long as both want. For one reader at a time."""

    __slots__ = ("_cancel", "_error", "_held", "_messages", "_needed", "_pieces", "_reader", "_send")

    def __init__(
        self, send: Callable[[StreamCall, bytes], None], cancel: Callable[[StreamCall, RpcError], None]
    ) -> None:
        """``send`` takes framed bytes (or none: there is room again); ``cancel`` ends the stream."""
        super().__init__()
        self._send, self._cancel = send, cancel
        self._messages: deque[bytes] = deque()
        self._pieces: list[bytes] = []
        self._held, self._needed = 0, _HEAD
        self._error: RpcError | None = None
        self._reader: asyncio.Future[None] | None = None

    @property
    def ends_by_itself(self) -> bool:
        return False

    def write(self, message: bytes) -> None:
        """Send a message. Raises RpcError when the call has ended."""
        if self._error is not None:
            raise self._error
        self._send(self, framed(message))

    async def read(self) -> bytes:
        """The next message. Raises RpcError when there is none any more, OUT_OF_RANGE for an end without a failure."""
        while not self._messages:
            if self._error is not None:
                raise self._error
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        message = self._messages.popleft()
        if not self._messages and self.returned:
            self._send(self, b"")
        return message

    def cancel(self, code: str = "CANCELLED", details: str = "the call was cancelled") -> None:
        """End the call; who reads gets this failure."""
        self._cancel(self, RpcError(code, details))

    def take_headers(self, fields: list[Field], end: bool) -> None:
        if end:
            self.fail(ended(fields) or RpcError("OUT_OF_RANGE", "the stream has ended"))

    def take_data(self, data: bytes, end: bool) -> bool:
        self._pieces.append(data)
        self._held += len(data)
        if self._held == self._needed > _HEAD and len(self._pieces[0]) > _HEAD:
            self._take_long_message()
        elif self._held >= self._needed:
            self._take_messages(b"".join(self._pieces))
        if self._messages:
            self._wake()
        if end:
            self.fail(RpcError("INTERNAL", "server closed the stream without sending trailers"))
        return not self._messages

    def _take_long_message(self) -> None:
        """One that came in pieces, and nothing behind it: put together once."""
        pieces, self._pieces, self._held, self._needed = self._pieces, [], 0, _HEAD
        pieces[0] = pieces[0][_HEAD:]
        self._messages.append(b"".join(pieces))

    def _take_messages(self, data: bytes) -> None:
        at, size = 0, len(data)
        self._needed = _HEAD
        while size - at >= _HEAD:
            length = _HEAD + int.from_bytes(data[at + 1 : at + _HEAD], "big")
            if at + length > size:
                self._needed = length
                break
            if data[at]:
                self._cancel(self, RpcError("INTERNAL", "a compressed message"))
                break
            self._messages.append(data[at + _HEAD : at + length])
            at += length
        self._pieces, self._held = [data[at:]] if at < size else [], size - at

    def fail(self, error: RpcError) -> None:
        self._error = self._error or error
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
