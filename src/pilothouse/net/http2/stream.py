"""One stream: the carrier of one exchange, and the way out for its body.

The request comes in through `receive` (its body), the answer goes out through `send_whole`, `send_parts` or a writer.
To those who write, a stream is a transport: it takes what it is given, sends as much as the windows allow, and pauses
them (`WriteGate`) while it keeps anything back.

Ends: `closed` once both sides are done or either has reset it. The connection forgets it then, and whatever the
exchange still does is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pilothouse.net.exchange import Exchange
from pilothouse.net.http2 import frames, response_head
from pilothouse.net.http2.frames import StreamFailure
from pilothouse.net.http2.output import Output
from pilothouse.net.messages import Request, Response
from pilothouse.net.request_body import RequestBody, Trailers
from pilothouse.net.request_head import HeaderBlock
from pilothouse.net.writing import BodyWriter, PartsSender, WriteGate

if TYPE_CHECKING:
    from pilothouse.net.http2.connection import Http2Connection

RECEIVE_WINDOW: Final = 256 * 1024
_AWAITED_BODY: Final = 256 * 1024  # bodies up to here are awaited before the handler starts
_ACKNOWLEDGED: Final = RECEIVE_WINDOW // 2
_FULL: Final = 1024  # a frame of less, with more to come, is the client's doing
_DATA: Final = frames.DATA
_header = frames.HEADER.pack


class Stream:
    """The server's side of one stream."""

    __slots__ = (
        "_body",
        "_connection",
        "_ending",
        "_expects_continue",
        "_gate",
        "_kept",
        "_kept_since",
        "_kept_size",
        "_output",
        "_received",
        "_request_ended",
        "_trailers",
        "_uncredited",
        "_window",
        "closed",
        "exchange",
        "id",
        "started",
        "window",
    )

    def __init__(self, connection: Http2Connection, output: Output, number: int) -> None:
        self._connection = connection
        self._output = output
        self.id = number
        self.window = output.initial_window
        self._window = RECEIVE_WINDOW
        self._gate: WriteGate | None = None
        self._kept: deque[memoryview | bytes] = deque()
        self._kept_size = 0
        self._kept_since = 0.0
        self._trailers: Trailers = ()
        self._ending = False  # the answer ends with what is kept
        self._body: RequestBody | None = None
        self._request_ended = False
        self._received = 0
        self._uncredited = 0  # bytes of the body that the client may not yet send again
        self._expects_continue = False
        self.exchange: Exchange | None = None
        self.started = False
        self.closed = False

    # The request

    def expect_body(self, headers: HeaderBlock) -> RequestBody:
        """The request has a body."""
        self._expects_continue = headers.expect == b"100-continue"
        body = self._body = RequestBody(
            self, headers.content_length, self._connection.server.held_input, self._connection.connection.peer[0]
        )
        return body

    @property
    def awaits_body(self) -> bool:
        """The body is small and on its way: the handler can be spared waiting for it."""
        body = self._body
        if body is None or body.complete or self._expects_continue:
            return False
        return body.length is not None and body.length <= _AWAITED_BODY

    def start(self) -> None:
        """Call the handler."""
        if not self.started and self.exchange is not None:
            self.started = True
            self.exchange.start()

    def end_request(self) -> None:
        """There is no body."""
        self._request_ended = True

    def receive(self, data: bytes, size: int, ended: bool, trailers: Trailers = ()) -> None:
        """A piece of the body, which took `size` bytes of the windows, and what comes after its end."""
        body = self._body
        if self._request_ended or body is None:
            self._connection.credit(size)
            raise StreamFailure(frames.STREAM_CLOSED, "data after the end")
        self._window -= size
        self._received += len(data)
        self._uncredited += size
        if self._window < 0:
            raise StreamFailure(frames.FLOW_CONTROL_ERROR, "more than the window")
        length = body.length
        if length is not None and (self._received > length or (ended and self._received < length)):
            raise StreamFailure(frames.PROTOCOL_ERROR, "not as long as declared")
        self._request_ended = ended
        body.feed(data, ended, trailers)
        if ended:
            self._credit(to_stream=False)
        elif self.started and not body.congested and self._uncredited >= _ACKNOWLEDGED:
            self._credit()

    def _credit(self, to_stream: bool = True) -> None:
        size, self._uncredited = self._uncredited, 0
        if size:
            self._connection.credit(size)
            if to_stream:
                self._window += size
                self._output.write(frames.window_update(self.id, size))

    def continue_reading(self) -> None:
        """The handler waits for its body."""
        if self.closed or self._request_ended:
            return
        if self._expects_continue:
            self._expects_continue = False
            self._output.write(frames.headers(self.id, response_head.CONTINUE))
        self._credit()

    # The answer

    def _send_head(self, response: Response, length: int | None, flags: int = 0) -> None:
        if not response_head.may_have_body(response.status):
            length = None
        block = response_head.block(response.status, response.content_type, response.headers, length)
        self._output.write(frames.headers(self.id, block, flags))

    def send_whole(self, request: Request, response: Response) -> None:
        body, output = response.body, self._output
        if not body or request.method == "HEAD" or not response_head.may_have_body(response.status):
            self._send_head(response, len(body), frames.END_STREAM)
            self._answered()
            return
        size = len(body)
        if size <= frames.FRAME_SIZE and size <= self.window and size <= output.window and not output.paused:
            block = response_head.block(response.status, response.content_type, response.headers, size)
            if len(block) <= frames.FRAME_SIZE:
                self.window -= size
                output.window -= size
                output.write(
                    b"%b%b%b%b"
                    % (
                        _header(len(block) >> 8, len(block) & 255, frames.HEADERS, frames.END_HEADERS, self.id),
                        block,
                        _header(size >> 8, size & 255, _DATA, frames.END_STREAM, self.id),
                        body,
                    )
                )
                self._answered()
                return
        self._send_head(response, size)
        self._ending = True
        self._keep(memoryview(body))

    def send_parts(self, request: Request, response: Response, done: Callable[[Exception | None], None]) -> None:
        if request.method == "HEAD" or response.parts is None:
            self._send_head(response, response.length, frames.END_STREAM)
            self._answered()
            return
        self._send_head(response, response.length)
        turns = self._connection.server.body_turns
        PartsSender(self._open_gate(), turns, b"", response.parts, response.length, done).run()

    def open_writer(self, request: Request, response: Response) -> BodyWriter | None:
        if request.method == "HEAD":
            self._send_head(response, None, frames.END_STREAM)
            self._answered()
            return None
        self._send_head(response, None)
        return BodyWriter(self._open_gate(), self._connection.server.loop, b"", False)

    def _open_gate(self) -> WriteGate:
        gate = self._gate = WriteGate(self)
        return gate

    def switch_protocol(self, request: Request, response: Response) -> None:
        # Nobody can have asked for it: headers that would ask are refused before.
        self.reset(frames.INTERNAL_ERROR)

    def close_after_answer(self) -> None:
        self._connection.go_away()

    def finish(self, trailers: Trailers = ()) -> None:
        if self.closed:
            return
        self._trailers = trailers
        if self._kept_size:
            self._ending = True
        else:
            if trailers:
                self._send_trailers()
            else:
                self._output.write(frames.header(0, _DATA, frames.END_STREAM, self.id))
            self._answered()

    def _send_trailers(self) -> None:
        block = response_head.trailer_block(self._trailers)
        self._output.write(frames.headers(self.id, block, frames.END_STREAM))

    def break_off(self) -> None:
        self.reset(frames.INTERNAL_ERROR)

    def abort(self) -> None:
        self.reset(frames.INTERNAL_ERROR)

    # As a transport

    def write(self, data: bytes) -> None:
        """Send, or keep what may not be sent yet."""
        if self.closed or not data:
            return
        output, size = self._output, len(data)
        if self._kept_size or size > frames.FRAME_SIZE or size > self.window or size > output.window or output.paused:
            self._keep(memoryview(data))
            return
        self.window -= size
        output.window -= size
        output.useful += 1
        output.write(_header(size >> 8, size & 255, _DATA, 0, self.id) + data)

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        """What is kept here; beyond it there is at most what the connection has for all its streams."""
        return self._kept_size

    def is_unread_since(self, before: float) -> bool:
        """Whether the rest of an answer, or a piece of it, waits for the client since then."""
        exchange = self.exchange
        return self._kept_size > 0 and self._kept_since < before and exchange is not None and not exchange.waiting

    def _keep(self, data: memoryview) -> None:
        if not self._kept_size:
            self._kept_since = self._connection.server.now
        self._kept.append(data)
        self._kept_size += len(data)
        self._output.kept += len(data)
        if self._gate is not None:
            self._gate.pause()
        if self.window > 0:
            self._output.queue(self)

    def send_frame(self) -> bool:
        """For the output: send one frame of what is kept; whether there could be another at once."""
        output = self._output
        most = min(self.window, output.window, frames.FRAME_SIZE)
        if self.closed or most <= 0 or not self._kept_size:
            return False
        pieces, size = self._take(most)
        self.window -= size
        output.window -= size
        last = self._ending and not self._kept_size
        if size >= _FULL:
            output.useful += 1
        flags = frames.END_STREAM if last and not self._trailers else 0
        output.write(b"".join((frames.header(size, _DATA, flags, self.id), *pieces)))
        if last:
            if self._trailers:
                self._send_trailers()
            self._answered()
        elif not self._kept_size and self._gate is not None:
            self._gate.open()
        return self._kept_size > 0 and self.window > 0

    def _take(self, most: int) -> tuple[list[memoryview | bytes], int]:
        kept, pieces, size = self._kept, [], 0
        while kept and size < most:
            piece = kept[0]
            if len(piece) > most - size:
                kept[0] = piece[most - size :]
                piece = piece[: most - size]
            else:
                kept.popleft()
            pieces.append(piece)
            size += len(piece)
        self._kept_size -= size
        self._output.kept -= size
        return pieces, size

    def enlarge(self, increment: int) -> None:
        """The client takes more on this stream."""
        if not increment:
            raise StreamFailure(frames.PROTOCOL_ERROR, "window enlarged by nothing")
        self.window += increment
        if self.window > frames.MAX_WINDOW:
            raise StreamFailure(frames.FLOW_CONTROL_ERROR, "window too large")
        if self._kept_size and self.window > 0:
            self._output.queue(self)

    # Ends

    def _answered(self) -> None:
        """The answer is written in full."""
        if self.exchange is not None:
            self.exchange.end()
        self._output.useful += 1
        if not self._request_ended:
            self._output.write(frames.rst_stream(self.id, frames.NO_ERROR))  # the rest of the body is not wanted
        self._close()

    def reset(self, code: int) -> None:
        """End it from our side."""
        if not self.closed:
            self._output.write(frames.rst_stream(self.id, code))
            self.lose()

    def lose(self) -> None:
        """It has ended, and the client wants nothing more of it."""
        exchange = self.exchange
        if self.closed:
            return
        self.closed = True
        if exchange is not None and not exchange.over:
            exchange.lose()
            if exchange.waiting:
                self._connection.mourn(exchange)
        self._close()

    def _close(self) -> None:
        self.closed = True
        self._output.leave(self)
        self._output.kept -= self._kept_size
        self._kept.clear()
        self._kept_size = 0
        self._credit(to_stream=False)
        gate = self._gate
        # Both know this stream: as long as it knows them too, only the garbage collector can free any of the three.
        self._gate = self.exchange = None
        if gate is not None:
            gate.close()
        self._connection.forget(self)
