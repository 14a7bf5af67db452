"""Bodies on their way from the wire to whoever reads them, with back-pressure.

`RequestBody` is the meeting point of the carrier, which feeds it, and the handler, which reads it; it never holds more
than the handler asked for plus one read of the socket, because the carrier stops reading when nobody is waiting and
`HIGH_WATER` is reached. What is long counts among what all requests hold (`held_input.py`), and may have to give way.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from pilothouse.net.held_input import FREE_BYTES, HeldInput

HIGH_WATER = 256 * 1024
_SHORT = 16 * 1024
Trailers = Sequence[tuple[bytes, bytes]]


class BodyTooLarge(Exception):
    """The body is longer than the reader allows."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"request body is larger than {limit} bytes")
        self.limit = limit


class MalformedBody(Exception):
    """The chunked framing of the body is broken; nothing after it on the connection can be trusted."""


class ClientDisconnected(ConnectionError):
    """The client went away before the exchange was over."""


class CrowdedOut(ClientDisconnected):
    """The body took long, others had bodies too, and it gave way."""


class BodySource(Protocol):
    """What a body needs of its connection."""

    def continue_reading(self) -> None:
        """The reader wants more: let bytes flow (and say 100 Continue if the client waits for it)."""


class RequestBody:
    """The body of one request on its way from the connection to the handler."""

    __slots__ = (
        "_address",
        "_error",
        "_held",
        "_is_held",
        "_pieces",
        "_source",
        "_waiter",
        "complete",
        "length",
        "size",
        "trailers",
    )

    def __init__(
        self, source: BodySource, length: int | None, held: HeldInput | None = None, address: str = ""
    ) -> None:
        """It counts among what is ``held``, as that of a client at ``address``."""
        self._source = source
        self._held, self._address = held, address
        self._is_held = False
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self.length = length
        self.size = 0
        self.complete = False
        self.trailers: Trailers = ()  # what came after the body, once it is complete

    @property
    def congested(self) -> bool:
        """Enough is buffered and nobody waits for more."""
        return self._waiter is None and self.size >= HIGH_WATER

    def feed(self, payload: bytes, complete: bool, trailers: Trailers = ()) -> None:
        if self._error is not None:
            return
        if payload:
            self._pieces.append(payload)
            self.size += len(payload)
            if self.size > FREE_BYTES and self._held is not None:
                self._hold(self._held, complete)
                if self._error is not None:
                    return
        self.complete = complete
        self.trailers = trailers
        self._wake()

    def _hold(self, held: HeldInput, complete: bool) -> None:
        if complete and not self._is_held:
            return  # it came at once: who works on it may have as many of them
        self._is_held = True
        held.hold(self, self._address, self.size)
        if complete:
            held.complete(self)

    def give_way(self) -> None:
        """See ``HeldInput``."""
        self._is_held = False
        self._pieces, self.size = [], 0
        self.fail(CrowdedOut("the body gave way to others"))

    def forget(self) -> None:
        """The request is served: nothing of it is wanted any more."""
        self._pieces = []
        self.release()

    def release(self) -> None:
        """It is not held any more."""
        if self._is_held and self._held is not None:
            self._is_held = False
            self._held.release(self)

    def fail(self, error: Exception) -> None:
        if not self.complete:
            self._error = error
            self._wake()

    def arrived(self, limit: int) -> bytes | None:
        """The whole body, if all of it is here already, in one piece, and no longer than that."""
        pieces = self._pieces
        return pieces[0] if self.complete and len(pieces) == 1 and self.size <= limit else None

    async def read(self, limit: int) -> bytes:
        """The whole body; does not suspend when it is already here."""
        if self.length is not None and self.length > limit:
            raise BodyTooLarge(limit)
        while not self.complete and self.size <= limit:
            await self._more()
        if self.size > limit:
            raise BodyTooLarge(limit)
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    def take(self) -> bytes:
        """What is here of it, all at once; what was taken is forgotten."""
        pieces, self._pieces, self.size = self._pieces, [], 0
        self.release()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _take_some(self) -> bytes:
        """The first piece, with those that follow as far as all of them are short: frames may have one byte each."""
        pieces = self._pieces
        count = size = 0
        while count < len(pieces) and size < _SHORT:
            size += len(pieces[count])
            count += 1
        taken = pieces[0] if count == 1 else b"".join(pieces[:count])
        del pieces[:count]
        self.size -= size
        if self._is_held and self._held is not None:
            self._held.hold(self, self._address, self.size)
        return taken

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives, short pieces that are here together; what was yielded is forgotten."""
        while True:
            while self._pieces:
                yield self._take_some()
            if self.complete:
                return
            await self._more()

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        waiter = self._waiter = asyncio.get_running_loop().create_future()
        self._source.continue_reading()
        try:
            await waiter
        finally:
            self._waiter = None
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
