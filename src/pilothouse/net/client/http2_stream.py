"""One request over HTTP/2 and its answer: a stream among others on a connection.

Guarantees: a body is no longer and no shorter than its length says; what nobody has read yet is bounded by the window
of the stream, so that an answer that is read slowly holds up nobody else's; a stream that is given up is reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pilothouse.net.client.head import MalformedReply
from pilothouse.net.client.http2_head import make_head, make_trailers
from pilothouse.net.client.outbound import Outbound
from pilothouse.net.client.reply import Reply
from pilothouse.net.dialing.failures import OutgoingError
from pilothouse.net.http2 import frames
from pilothouse.net.http2.field_lines import encode_fields
from pilothouse.net.http2.frames import ConnectionFailure, StreamFailure
from pilothouse.net.http2.hpack import Field
from pilothouse.net.http2.output import Output
from pilothouse.net.request_body import ClientDisconnected, MalformedBody, RequestBody, Trailers

if TYPE_CHECKING:
    from pilothouse.net.client.http2 import Http2ClientConnection

WINDOW: Final = 256 * 1024
_INTERIM: Final = 5  # answers before the answer, as in Go
_NOTHING: Final = memoryview(b"")


class ClientStream:
    """The client's side of one stream."""

    __slots__ = (
        "_body",
        "_connection",
        "_ended",
        "_interim",
        "_method",
        "_outgoing",
        "_output",
        "_pump",
        "_reply",
        "_sending",
        "_sent",
        "_stuck",
        "_uncredited",
        "_window",
        "closed",
        "head",
        "left",
        "number",
        "window",
    )

    def __init__(self, connection: Http2ClientConnection, output: Output, number: int, method: str) -> None:
        self._connection, self._output, self._method = connection, output, method
        self.number = number
        self.window = output.initial_window
        self.head: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._reply: Reply | None = None
        self._body: RequestBody | None = None
        self.left: int | None = None
        """How much of the body is still to come; None where nobody said."""
        self._window = WINDOW
        self._uncredited = self._interim = 0
        self._stuck = False  # the server has to wait until somebody reads
        self._sending = False  # the request has more to say
        self._ended = False  # nothing comes after what is being sent
        self._outgoing = _NOTHING
        self._sent: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self.closed = False

    # The request

    def send(self, block: bytes, outbound: Outbound) -> None:
        """Send a request, or begin to."""
        body = outbound.body
        if not body:
            self._output.write(frames.headers(self.number, block, frames.END_STREAM))
            return
        self._sending = True
        self._output.write(frames.headers(self.number, block))
        if isinstance(body, bytes):
            self._ended = True
            self._offer(body)
        else:
            self._pump = asyncio.get_running_loop().create_task(self._send_pieces(body, outbound))

    def _offer(self, data: bytes) -> None:
        self._outgoing = memoryview(data)
        self._output.queue(self)

    def send_frame(self) -> bool:
        """Send as much as fits into one frame; whether there is more that may go."""
        size = min(len(self._outgoing), self.window, self._output.window, frames.FRAME_SIZE)
        if size <= 0:
            return False
        piece, self._outgoing = self._outgoing[:size], self._outgoing[size:]
        self.window -= size
        self._output.window -= size
        flags = 0
        if not self._outgoing:
            if self._ended:
                flags, self._sending = frames.END_STREAM, False
            if self._sent is not None and not self._sent.done():
                self._sent.set_result(None)
        self._output.write(frames.header(size, frames.DATA, flags, self.number) + piece)
        return bool(self._outgoing) and self.window > 0

    def enlarge(self, increment: int) -> None:
        """The server takes more on this stream."""
        self.window += increment
        if self.window > frames.MAX_WINDOW:
            raise StreamFailure(frames.FLOW_CONTROL_ERROR, "window too large")
        if self._outgoing and self.window > 0:
            self._output.queue(self)

    async def _send_pieces(self, body: AsyncIterator[bytes], outbound: Outbound) -> None:
        try:
            async for piece in body:
                if piece:
                    self._sent = asyncio.get_running_loop().create_future()
                    self._offer(piece)
                    await self._sent
            self._sending = False
            trailers = () if outbound.trailers is None else outbound.trailers()
            if trailers:
                self._output.write(frames.headers(self.number, encode_fields(trailers), frames.END_STREAM))
            else:
                self._output.write(frames.header(0, frames.DATA, frames.END_STREAM, self.number))
        except (ClientDisconnected, MalformedBody) as error:  # the one we send for has gone, or made no sense
            self.reset(frames.CANCEL, error if isinstance(error, MalformedBody) else OutgoingError("EOF"))

    # The answer

    def take_fields(self, fields: list[Field], ended: bool) -> None:
        """A head, an interim one, or trailers. Raises StreamFailure."""
        try:
            if self._reply is not None:
                if not ended:
                    raise MalformedReply("malformed response from server: trailers that do not end")
                self._feed(b"", ended=True, trailers=make_trailers(fields))
                return
            head = make_head(fields, self._method)
        except MalformedReply as error:
            raise StreamFailure(frames.PROTOCOL_ERROR, str(error)) from None
        if head.status < 200:
            self._interim += 1
            if ended or self._interim > _INTERIM or head.status == 101:
                raise StreamFailure(frames.PROTOCOL_ERROR, "http2: too many 1xx informational responses")
            return
        body = self._body = RequestBody(self, head.length)
        self.left = 0 if self._method == "HEAD" else head.length
        reply = self._reply = Reply(self, head, body)
        if not self.head.done():
            self.head.set_result(reply)
        if ended:
            self._feed(b"", ended=True)

    def take_data(self, data: bytes, size: int, ended: bool) -> None:
        """A piece of the body, which took ``size`` bytes of the window. Raises StreamFailure and ConnectionFailure."""
        body = self._body
        if body is None:
            raise StreamFailure(frames.PROTOCOL_ERROR, "http2: received DATA before a HEADERS frame")
        self._window -= size
        if self._window < 0:
            raise ConnectionFailure(frames.FLOW_CONTROL_ERROR, "more than the window")
        self._uncredited += size
        self._feed(data, ended=ended)
        if ended:
            return
        if not body.congested:
            self.continue_reading()
        elif self._uncredited >= WINDOW // 2 and not self._stuck:
            self._stuck = True
            self._connection.stuck += 1

    def _feed(self, data: bytes, *, ended: bool, trailers: Trailers = ()) -> None:
        body = self._body
        if body is None:
            return
        if self.left is not None:
            self.left -= len(data)
            if self.left < 0:
                why = "net/http: server replied with more than declared Content-Length; truncated"
                raise StreamFailure(frames.PROTOCOL_ERROR, why)
            if ended and self.left:
                raise StreamFailure(frames.PROTOCOL_ERROR, "unexpected EOF")
        body.feed(data, ended, trailers)
        if ended:
            if self._sending:  # the rest of the request is not wanted
                self._output.write(frames.rst_stream(self.number, frames.CANCEL))
            self._close()

    def continue_reading(self) -> None:
        """Whoever reads the body waits for more of it."""
        if self._uncredited >= WINDOW // 2 and not self.closed:
            self._window += self._uncredited
            self._output.write(frames.window_update(self.number, self._uncredited))
            self._uncredited = 0
            self._unstick()

    def _unstick(self) -> None:
        if self._stuck:
            self._stuck = False
            self._connection.stuck -= 1

    # For whoever holds the answer

    def carries(self, reply: Reply) -> bool:
        """Whether an answer is still being received."""
        return self._reply is reply and not self.closed

    async def settle(self) -> None:
        """The answer is done with, though not complete."""
        pump = self._pump
        self.drop()
        if pump is not None:
            with suppress(asyncio.CancelledError, Exception):
                await pump

    def drop(self) -> None:
        """The same, at once."""
        self.reset(frames.CANCEL, OutgoingError("the request was given up"))

    def hand_over(self, protocol: asyncio.Protocol) -> tuple[asyncio.Transport, bytes]:
        """Streams do not go on as something else."""
        raise OutgoingError("invalid upgrade response: not over HTTP/2")

    # Ends

    def reset(self, code: int, error: Exception) -> None:
        """End it from our side."""
        if not self.closed:
            self._output.write(frames.rst_stream(self.number, code))
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """It has ended before its time."""
        if self.closed:
            return
        if not self.head.done():
            self.head.set_exception(error)
            self.head.exception()  # whoever waited may have gone
        elif self._body is not None:
            self._body.fail(error)
        self._close()

    def _close(self) -> None:
        self.closed = True
        self._unstick()
        self._outgoing = _NOTHING
        self._output.leave(self)
        if self._pump is not None and not self._pump.done() and self._pump is not asyncio.current_task():
            self._pump.cancel()
        self._connection.forget(self)
