"""One connection to another server: a request, its answer, and the next.

Guarantees: what is sent is what was given, byte for byte. An answer's body is read no faster than it is taken
(``RequestBody`` is the meeting point, as on the server's side). A connection belongs to one exchange until its
``Reply`` is closed, which whoever holds it does; it is given back then, and only if both messages ended where their
framing says and nothing came after. In every other case it is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import cast

from pilothouse.net.client.departures import Departures
from pilothouse.net.client.head import MAX_HEAD, HeadReader, MalformedReply, ReplyHead
from pilothouse.net.client.outbound import Outbound
from pilothouse.net.client.reply import Reply
from pilothouse.net.dialing.failures import OutgoingError, explain_reading
from pilothouse.net.eager import Prompt
from pilothouse.net.framing import chunk, last_chunk
from pilothouse.net.http1.body_decoder import ChunkedDecoder, Decoder, LengthDecoder
from pilothouse.net.request_body import ClientDisconnected, MalformedBody, RequestBody
from pilothouse.net.writing import WriteGate


class ConnectionEnded(OutgoingError):
    """The other side hung up; ``untouched`` if it did so before it answered anything.

    ``unprocessed``: it said that it has not looked at the request.
    """

    def __init__(self, message: str, *, untouched: bool, unprocessed: bool = False) -> None:
        super().__init__(message)
        self.untouched, self.unprocessed = untouched, unprocessed


class ClientConnection(asyncio.Protocol):
    """One connection. ``release`` is called when it can be used again.

    ``_reply`` is the answer that is being awaited or received. Once it is complete the connection may serve others, and
    whoever still holds that answer has no more say over the connection.
    """

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    """Asking asyncio for the running one is a system call each time."""
    _gate: WriteGate

    def __init__(self, release: Callable[[ClientConnection], None], departures: Departures | None = None) -> None:
        self._release, self._departures = release, departures or Departures()
        self._buffer, self._heads = bytearray(), HeadReader()
        self._received = 0  # bytes of heads since the request was sent
        self._method = ""
        self._head: Prompt[Reply] | None = None
        self._reply: Reply | None = None
        self._decoder: Decoder | None = None
        self._until_closed = False
        self._reusable = True
        self._pump: asyncio.Task[None] | None = None
        self._paused = False
        self.closed = False
        self.idle_since = 0.0

    # For the client

    async def exchange(self, outbound: Outbound) -> Reply:
        """Send a request and wait for the head of its answer. Raises OutgoingError."""
        head = self.ask(outbound)
        try:
            return await head
        except BaseException:
            await self.give_up(head)
            raise

    def ask(self, outbound: Outbound) -> Prompt[Reply]:
        """Send a request. Who waits for the head of the answer in vain calls ``give_up``. Raises OutgoingError."""
        sent = outbound.encoded or outbound.head()
        if self.closed:
            raise ConnectionEnded("EOF", untouched=True)
        self._method = outbound.method
        self._reusable = True
        self._received = 0
        head: Prompt[Reply] = Prompt(loop=self.loop)
        self._head = head
        body, departures = outbound.body, self._departures
        departures.under_way += 1
        if isinstance(body, bytes):
            departures.send(self.transport, sent + body, self.loop)
        else:
            self.transport.write(sent)
            self._pump = self.loop.create_task(self._send_body(body, outbound))
        return head

    async def give_up(self, head: Prompt[Reply]) -> None:
        """Nobody waits any more for the answer to what was asked."""
        if self._head is head or head.cancelled() or head.exception() is not None:
            await self.abort()
        else:
            await head.result().abort()  # cancelled just when the answer came

    async def abort(self) -> None:
        """Close at once."""
        self.drop()
        await self._end_pump()

    def drop(self) -> None:
        """Close at once, without waiting for anything."""
        self.closed = True
        self.transport.abort()
        if self._pump is not None:
            self._pump.cancel()

    def carries(self, reply: Reply) -> bool:
        """Whether an answer is still being received."""
        return self._reply is reply

    async def settle(self) -> None:
        """The present answer is done with, though not complete."""
        self._reply = None
        await self.abort()

    def hand_over(self, protocol: asyncio.Protocol) -> tuple[asyncio.Transport, bytes]:
        """Give up the connection after a 101: it belongs to ``protocol``, and so do the bytes that came already."""
        leftover = bytes(self._buffer)
        self._buffer.clear()
        self._reply = None
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        if self._gate.paused:
            protocol.pause_writing()
        self.continue_reading()
        return self.transport, leftover

    async def _end_pump(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await pump

    async def _send_body(self, body: AsyncIterator[bytes], outbound: Outbound) -> None:
        chunked = outbound.length is None
        try:
            async for piece in body:
                if piece:
                    self.transport.write(chunk(piece) if chunked else piece)
                    await self._gate.wait()
            if chunked:
                self.transport.write(last_chunk(() if outbound.trailers is None else outbound.trailers()))
        except (ClientDisconnected, MalformedBody) as error:  # the one we send for has gone, or the other side has
            self._fail(error if isinstance(error, MalformedBody) else ConnectionEnded("EOF", untouched=False))
            self.transport.abort()

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.loop = cast(asyncio.Transport, transport), asyncio.get_running_loop()
        self._gate = WriteGate(self.transport)

    def pause_writing(self) -> None:
        self._gate.pause()

    def resume_writing(self) -> None:
        self._gate.open()

    def data_received(self, data: bytes) -> None:
        if self._decoder is not None or self._until_closed:
            self._receive_body(data)
            return
        if self._head is None:
            if self._reply is None:  # nobody asked for anything
                self.closed = True
                self.transport.abort()
            else:
                self._buffer += data
            return
        try:
            self._receive_head(data)
        except MalformedReply as error:
            self._fail(OutgoingError(str(error)))
            self.transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._gate.close()
        reply = self._reply
        if self._until_closed and exc is None and reply is not None:
            self._until_closed = False
            self._reply = None
            reply.body.feed(b"", True)
            return
        touched = self._received > 0 or reply is not None
        self._fail(ConnectionEnded("unexpected EOF" if touched else explain_reading(exc), untouched=not touched))

    def _fail(self, error: Exception) -> None:
        self.closed = True
        head, self._head = self._head, None
        reply, self._reply = self._reply, None
        if head is not None:
            self._departures.under_way -= 1
        if head is not None and not head.done():
            head.refuse(error)
        elif reply is not None:
            reply.body.fail(error)

    # Input

    def _receive_head(self, data: bytes) -> None:
        """Each byte is searched once, and interim answers count as well: whatever comes, it ends at ``MAX_HEAD``."""
        self._received += len(data)
        buffer, scanned = self._buffer, 0
        if buffer:
            scanned = max(0, len(buffer) - 3)
            buffer += data
        end = buffer.find(b"\r\n\r\n", scanned) if buffer else data.find(b"\r\n\r\n")
        if buffer and end >= 0:
            data = bytes(buffer)
            buffer.clear()
        start = 0
        while 0 <= end - start <= MAX_HEAD:
            head = self._heads.read(data[start:end])
            start = end + 4
            if head.status >= 200 or head.status == 101:
                self._begin(head, data[start:])
                return
            end = data.find(b"\r\n\r\n", start)
        if self._received > MAX_HEAD:
            raise MalformedReply(f"net/http: server response headers exceeded {MAX_HEAD} bytes; aborted")
        if not buffer:
            buffer += data[start:]

    def _begin(self, head: ReplyHead, rest: bytes) -> None:
        """A head is complete; ``rest`` came behind it. Whoever waits goes on when all that is here has been taken."""
        waiting, self._head = self._head, None
        self._departures.under_way -= 1
        is_whole = head.is_ordinary and len(rest) == head.length
        if is_whole and self._pump is None and self._method != "HEAD" and not self.closed:
            reply = Reply(self, head, None, rest)
            self._release(self)
        else:
            reply = self._reply = Reply(self, head, RequestBody(self, head.length))
            self._take_first(reply, head, rest)
        if waiting is not None:
            waiting.settle(reply)

    def _take_first(self, reply: Reply, head: ReplyHead, rest: bytes) -> None:
        self._reusable = not head.close
        if head.status == 101:
            self._buffer += rest
            reply.body.feed(b"", True)
            self._pause()
        elif self._method == "HEAD" or head.status in (204, 304) or (head.length == 0 and not head.chunked):
            reply.body.feed(b"", True)
            self._completed(rest)
        elif head.length is not None and len(rest) == head.length:
            reply.body.feed(rest, True)
            self._completed(b"")
        else:
            self._begin_body(head, rest)

    def _begin_body(self, head: ReplyHead, rest: bytes) -> None:
        if head.chunked:
            self._decoder = ChunkedDecoder()
        elif head.length is not None:
            self._decoder = LengthDecoder(head.length)
        else:
            self._until_closed = True
            self._reusable = False
        if rest:
            self._receive_body(rest)

    def _receive_body(self, data: bytes) -> None:
        if self._reply is None:
            return  # given up
        body = self._reply.body
        if self._until_closed:
            body.feed(data, False)
        else:
            assert self._decoder is not None
            try:
                payload, rest = self._decoder.feed(data)
            except MalformedBody as error:
                self._fail(OutgoingError(str(error)))
                self.transport.abort()
                return
            body.feed(payload, rest is not None, self._decoder.trailers)
            if rest is not None:
                self._decoder = None
                self._completed(rest)
                return
        if body.congested:
            self._pause()

    def _completed(self, rest: bytes) -> None:
        """The answer is all here: the connection may serve the next request, if all is in order."""
        self._reply = None
        sending = self._pump is not None and not self._pump.done()
        if rest or not self._reusable or sending or self.closed:
            self.closed = True
            if self._pump is not None:
                self._pump.cancel()
            self.transport.close()
            return
        self._pump = None
        self.continue_reading()
        self._release(self)

    def continue_reading(self) -> None:
        """Let bytes flow."""
        if self._paused:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def _pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()
