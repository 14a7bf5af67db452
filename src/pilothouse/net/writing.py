"""Sending bodies that are not one piece of bytes, at the pace of the client.

`PartsSender` sends a body that is made of many pieces; `BodyWriter` is what a streaming handler writes to.
Neither holds more than one batch beyond the transport's own buffer: both stop while the transport is paused.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Final, Protocol

from pilothouse.net.framing import CHUNKED, UNFRAMED, Framing, chunk, last_chunk
from pilothouse.net.request_body import ClientDisconnected, Trailers

# Small enough that the copies made on the way (joined, encrypted) are reused heap memory. Measured over TLS: larger
# batches go through mmap and cost up to half the throughput in page errors.
BATCH = 60 * 1024
_SECONDS: Final = 0.001
"""What a batch may take whose parts are made as it is sent."""


class Outlet(Protocol):
    """Where bytes leave: a transport, or what acts as one for a part of a connection."""

    def write(self, data: bytes, /) -> None: ...

    def is_closing(self) -> bool: ...

    def get_write_buffer_size(self) -> int: ...


class WriteGate:
    """Whether the transport accepts more, and who wants to know when it does again."""

    __slots__ = ("_waiter", "closed", "on_open", "paused", "transport")

    def __init__(self, transport: Outlet) -> None:
        self.transport = transport
        self.paused = False
        self.closed = False
        self.on_open: Callable[[], object] | None = None
        self._waiter: asyncio.Future[bool] | None = None

    def pause(self) -> None:
        self.paused = True

    def open(self) -> None:
        self.paused = False
        self._notify()

    def close(self) -> None:
        self.closed = True
        self._notify()

    def way_out(self) -> Outlet | None:
        """The transport, if it accepts more right now."""
        transport = self.transport
        return None if self.paused or self.closed or transport.is_closing() else transport

    async def wait(self, patience: float | None = None) -> bool:
        """Return once the transport accepts more; ClientDisconnected when it never will.

        False: it did not within `patience` seconds.
        """
        while self.paused and not self.closed:
            loop = asyncio.get_running_loop()
            waiter = self._waiter = loop.create_future()
            if patience is None:
                await waiter
                continue
            timer = loop.call_later(patience, _settle, waiter, False)
            try:
                if not await waiter:
                    return False
            finally:
                timer.cancel()
        if self.closed:
            raise ClientDisconnected("client disconnected")
        return True

    def _notify(self) -> None:
        if self._waiter is not None:
            _settle(self._waiter, True)
        if self.on_open is not None:
            self.on_open()


def _settle(waiter: asyncio.Future[bool], opened: bool) -> None:
    if not waiter.done():
        waiter.set_result(opened)


class Turns(Protocol):
    """Who says when the next batch may be written: the loop, or something fairer."""

    def call_soon(self, write: Callable[[], object], /) -> object: ...


class PartsSender:
    """Writes head and parts in batches without a Task of its own; `done(None)` or `done(error)` is called once."""

    __slots__ = ("_chunked", "_done", "_gate", "_head", "_parts", "_remaining", "_turns")

    def __init__(
        self,
        gate: WriteGate,
        turns: Turns,
        head: bytes,
        parts: Iterable[bytes],
        length: int | None,
        done: Callable[[Exception | None], None],
        *,
        chunked: bool = False,
    ) -> None:
        self._gate = gate
        self._turns = turns
        self._head = head
        self._parts: Iterator[bytes] = iter(parts)
        self._remaining = length
        self._done = done
        self._chunked = chunked

    def run(self) -> None:
        """Send a batch, unless the transport is paused, then arrange to be called again.

        One batch a turn of the loop: however many long bodies are on their way, short answers overtake them.
        """
        gate = self._gate
        gate.on_open = None
        if gate.closed or gate.transport.is_closing():
            return self._done(ClientDisconnected("client disconnected"))
        if gate.paused:
            gate.on_open = self.run
            return None
        try:
            more = self._send_batch()
        except Exception as error:
            return self._done(error)
        if not more:
            return self._done(None)
        self._turns.call_soon(self.run)
        return None

    def _send_batch(self) -> bool:
        head, self._head = self._head, b""
        batch: list[bytes] = []
        size, more, ends = 0, False, perf_counter() + _SECONDS
        for part in self._parts:
            batch.append(part)
            size += len(part)
            if size >= BATCH or (self._remaining is None and perf_counter() >= ends):
                more = True
                break
        if self._remaining is not None:
            self._remaining -= size
            if self._remaining < 0:
                raise ValueError("response parts are longer than their length")
            if self._remaining and not more:
                raise ValueError(f"response parts end {self._remaining} bytes short of their length")
        if self._chunked:
            if size:
                head += b"%x\r\n" % size
                batch.append(b"\r\n")
            if not more:
                batch.append(last_chunk(()))
        if head:
            batch.insert(0, head)
        # One part alone, as of most of a long list, is not copied here.
        if data := b"".join(batch):
            self._gate.transport.write(data)
        return more


class BodyWriter:
    """Where a streaming handler writes. Writes of one turn of the loop leave together."""

    __slots__ = ("_chunked", "_gate", "_loop", "_pieces", "_scheduled", "_size", "closed", "trailers")

    def __init__(self, gate: WriteGate, loop: asyncio.AbstractEventLoop, head: bytes, chunked: bool) -> None:
        self._gate = gate
        self._loop = loop
        self._chunked = chunked
        self._pieces = [head]
        self._size = len(head)
        self.closed = False
        self.trailers: Trailers = ()
        """What comes after the body, where the protocol has a place for it; set before the handler returns."""
        self._scheduled = True
        loop.call_soon(self._turn)

    @property
    def buffered(self) -> int:
        """Bytes accepted but not yet handed to the operating system."""
        return self._size + (0 if self.closed else self._gate.transport.get_write_buffer_size())

    def write(self, data: bytes) -> None:
        """Queue `data`; never waits. A no-op once the client has gone."""
        if self.closed or not data:
            return
        self._pieces.append(chunk(data) if self._chunked else data)
        self._size += len(data)
        if self._size >= BATCH:
            self.flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._turn)

    @property
    def framing(self) -> Framing:
        """What `write_frames` wants done to pieces of the body."""
        return CHUNKED if self._chunked else UNFRAMED

    def open_gate(self) -> WriteGate:
        """Hand everything to the transport now, so that frames may be written to it directly from here on."""
        self.flush()
        return self._gate

    def write_frames(self, frames: bytes) -> None:
        """Hand to the transport, now and in one piece, what is framed already. A no-op once the client has gone."""
        if self._pieces and len(frames) <= BATCH:
            self._pieces.append(frames)
            self.flush()
            return
        self.flush()
        if not self.closed and not self._gate.transport.is_closing():
            self._gate.transport.write(frames)

    async def drain(self, patience: float | None = None) -> bool:
        """Hand everything to the transport and wait while the client is slow; ClientDisconnected if it has gone.

        False: the client is still slow after `patience` seconds.
        """
        self.flush()
        return await self._gate.wait(patience)

    def flush(self) -> None:
        """Hand everything to the transport now."""
        if self._pieces and not self.closed and not self._gate.transport.is_closing():
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._gate.transport.write(data)

    def finish(self) -> None:
        """For the server: the handler is done, end the body."""
        if self._chunked:
            self._pieces.append(last_chunk(self.trailers))
        self.flush()
        self.close()

    def close(self) -> None:
        """For the server: nothing more can be sent."""
        self.closed = True
        self._pieces.clear()
        self._size = 0

    def _turn(self) -> None:
        self._scheduled = False
        self.flush()
