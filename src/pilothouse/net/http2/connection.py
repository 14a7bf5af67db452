"""One HTTP/2 connection: frames in, an exchange on every stream, frames out.

    data_received -> FrameReader -> HEADERS        -> HeaderBlocks -> HeadDecoder -> Stream with an Exchange
                                  -> DATA           -> Stream.receive
                                  -> WINDOW_UPDATE  -> Output, Stream
                                  -> the others     -> answered here

What a client can make the server hold or do is bounded: input waits (and the socket is not read) while the transport
takes no output, and after each turn's share of frames; requests wait their turn (`streams.py`); what serves nobody is
counted (`patience.py`).

Ends: `go_away` finishes what has begun and takes no more; a client's mistake ends the connection with its code in a
GOAWAY. `_closing` ends the conversation: input is dropped from then on.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from pilothouse.net.exchange import Exchange
from pilothouse.net.held_input import FREE_BYTES
from pilothouse.net.http2 import frames, patience, response_head
from pilothouse.net.http2.frame_reader import FrameReader
from pilothouse.net.http2.frames import ConnectionFailure, StreamFailure
from pilothouse.net.http2.header_blocks import Block, HeaderBlocks, unpad
from pilothouse.net.http2.hpack import TABLE_SIZE, HeaderListTooLarge
from pilothouse.net.http2.huffman import forget_ahead
from pilothouse.net.http2.output import Output
from pilothouse.net.http2.patience import Patience
from pilothouse.net.http2.request_head import HeadDecoder, RequestHead
from pilothouse.net.http2.settings import PeerSettings
from pilothouse.net.http2.stream import RECEIVE_WINDOW, Stream
from pilothouse.net.http2.streams import Streams
from pilothouse.net.messages import Connection, Response
from pilothouse.net.parking import SILENT_SECONDS
from pilothouse.net.reading_turns import LONG_SECONDS
from pilothouse.net.request_body import Trailers

if TYPE_CHECKING:
    from pilothouse.net.server import HttpServer

_INPUT_HIGH: Final = 256 * 1024
_TURN: Final = 256
_REQUEST_SHARE: Final = 16  # of a turn
_LONG_BLOCK: Final = 16 * 1024
"""Header blocks that may take longer than a turn."""
_RECEIVE_WINDOW: Final = 1 << 20  # of all streams together
_TEXT: Final = b"text/plain; charset=utf-8"
_NO_SNIFFING: Final = ((b"X-Content-Type-Options", b"nosniff"),)
_TOO_LARGE: Final = b"<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>"


class Http2Connection(asyncio.Protocol):
    """The server's side of one connection."""

    __slots__ = (
        "_blocks",
        "_closing",
        "_going_away",
        "_greeted",
        "_heads",
        "_input",
        "_last",
        "_output",
        "_patience",
        "_processing",
        "_reading_paused",
        "_settings",
        "_since",
        "_streams",
        "_turn_due",
        "_uncredited",
        "_unfolding",
        "_window",
        "connection",
        "server",
        "transport",
    )

    transport: asyncio.Transport
    connection: Connection
    _output: Output
    _streams: Streams

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self._input = FrameReader()
        self._heads = HeadDecoder(server.limits.header_bytes)
        self._settings = PeerSettings()
        self._patience = Patience(server.now)
        self._blocks = HeaderBlocks(server.limits.header_bytes)
        self._last = 0  # the latest stream
        self._window = _RECEIVE_WINDOW
        self._uncredited = 0
        self._greeted = False  # the client has sent its settings
        self._going_away = False
        self._closing = False
        self._turn_due = False
        self._processing = False
        self._reading_paused = False
        self._unfolding: tuple[Block, Iterator[None]] | None = None  # a long block, whose turn comes again
        self._since = server.now  # when the last stream ended, or the first frame was awaited

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.connection = Connection(self.transport, self.server.turns)
        self._output = Output(self.transport, self.server.loop)
        self._streams = Streams(self.server.http2.max_streams, self._output, self.server.loop)
        self.server.admit(self)
        values = [
            (frames.MAX_FRAME_SIZE, frames.FRAME_SIZE),
            (frames.MAX_CONCURRENT_STREAMS, self.server.http2.max_streams),
            (frames.MAX_HEADER_LIST_SIZE, self.server.limits.header_bytes),
            (frames.HEADER_TABLE_SIZE, TABLE_SIZE),
            (frames.INITIAL_WINDOW_SIZE, RECEIVE_WINDOW),
        ]
        more = frames.window_update(0, _RECEIVE_WINDOW - frames.DEFAULT_WINDOW)
        self.transport.write(frames.settings(values) + more)

    def data_received(self, data: bytes) -> None:
        self.server.polling.came()
        if self._closing:
            return
        self._input.feed(data)
        if (self._turn_due or self._output.paused) and self._input.pending > _INPUT_HIGH:
            self._pause_reading()
        self._process()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._unfolding = None
        self._input.clear()
        self.server.held_input.release(self)
        self.server.forget(self)
        for stream in self._streams.all():
            stream.lose()

    def pause_writing(self) -> None:
        self._output.paused = True

    def resume_writing(self) -> None:
        self._output.resume()
        self._go_on()

    # Input

    def _go_on(self) -> None:
        if not (self._closing or self._turn_due or self._output.paused):
            if self._reading_paused:
                self._reading_paused = False
                self.transport.resume_reading()
            self._streams.start_waiting()
            self._process()

    def read_late(self) -> None:
        """Go on with frames of which there are more than one turn takes."""
        self._turn_due = False
        self._go_on()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _process(self) -> None:
        if self._processing or self._turn_due:
            return
        self._processing = True
        output = self._output
        output.hold()
        try:
            self._process_frames(output)
            self._streams.start_waiting()
        except ConnectionFailure as failure:
            self._fail(failure)
        finally:
            self._processing = False
            output.release()

    def _process_frames(self, output: Output) -> None:
        left, next_frame = _TURN, self._input.next_frame
        ends = perf_counter() + LONG_SECONDS
        if self._unfolding is not None and not self._unfold(*self._unfolding, ends):
            left = 0
        while not (self._closing or output.paused):
            if left <= 0:
                self._turn_due = True
                self.server.reading.defer(self)
                return
            frame = next_frame()
            if frame is None:
                return
            kind, flags, number, payload = frame
            left -= _REQUEST_SHARE if kind == frames.HEADERS else 1
            try:
                self._take(kind, flags, number, payload)
            except StreamFailure as failure:
                self._reset(number, failure.code)
            if self._unfolding is not None or (kind != frames.DATA and perf_counter() >= ends):
                left = 0

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._blocks.unfinished:
            frames.check_continued(kind)
        if not self._greeted:
            frames.check_greeting(kind, flags)
            self._greeted = True
        if kind == frames.HEADERS:
            self._take_headers(flags, number, payload)
        elif kind == frames.DATA:
            self._take_data(flags, number, payload)
        else:
            self._patience.spend(patience.FRAME, self._output.useful)
            take = _OTHERS.get(kind)
            if take is not None:  # what is unknown is ignored
                take(self, flags, number, payload)

    # Requests

    def _take_headers(self, flags: int, number: int, payload: bytes) -> None:
        block = self._blocks.begin(flags, number, payload)
        if block is not None:
            self._take_block(block)
        else:
            self._since = self.server.now
            self._hold_block()

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        block = self._blocks.go_on(flags, number, payload)
        self._hold_block()
        if block is not None:
            self._take_block(block)

    def _hold_block(self) -> None:
        """Have a long head that is not complete counted."""
        held, size = self.server.held_input, self._blocks.size
        if size > FREE_BYTES:
            held.hold(self, self.connection.peer[0], size)
        else:
            held.release(self)

    def give_way(self) -> None:
        """See ``HeldInput``."""
        self._input.clear()
        self.abort()

    def _take_block(self, block: Block) -> None:
        if len(block.data) >= _LONG_BLOCK:
            self._unfolding = block, self._heads.unfold(block.data)
        else:
            self._accept_block(block)

    def _unfold(self, block: Block, steps: Iterator[None], ends: float) -> bool:
        """Go on with a long block; whether it is done."""
        for _ in steps:
            if perf_counter() >= ends:
                return False
        self._unfolding = None
        try:
            self._accept_block(block)
        except StreamFailure as failure:
            self._reset(block.stream, failure.code)
        finally:
            forget_ahead()
        return True

    def _accept_block(self, block: Block) -> None:
        number = block.stream
        stream = self._streams.get(number)
        if stream is not None:
            self._end_with_trailers(stream, block)
            return
        if self._going_away and number > self._last:
            self._heads.skip(block.data)
            return
        if number <= self._last:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "stream used before")
        self._last = number
        try:
            head = self._heads.request(block.data)
        except HeaderListTooLarge:
            self._refuse_head(number)
            return
        if block.depends == number:
            raise StreamFailure(frames.PROTOCOL_ERROR, "depends on itself")
        if self._streams.full:
            known = self._settings.acknowledged
            raise StreamFailure(frames.PROTOCOL_ERROR if known else frames.REFUSED_STREAM, "too many streams")
        self._begin(Stream(self, self._output, number), head, block.ended)

    def _end_with_trailers(self, stream: Stream, block: Block) -> None:
        try:
            trailers = self._heads.trailers(block.data)
        except HeaderListTooLarge as error:
            raise ConnectionFailure(frames.ENHANCE_YOUR_CALM, "trailers too large") from error
        if not block.ended:
            raise StreamFailure(frames.PROTOCOL_ERROR, "trailers that do not end")
        self._feed(stream, b"", 0, True, trailers)

    def _begin(self, stream: Stream, head: RequestHead, ended: bool) -> None:
        self._streams.add(stream)
        body = None
        if ended:
            stream.end_request()
        else:
            body = stream.expect_body(head.headers)
        server = self.server
        request = server.request_type(self.connection, head.line, head.headers, True, body)
        exchange = stream.exchange = Exchange(server, stream, request, body)
        if server.http2.goaway_chance and random.random() < server.http2.goaway_chance:
            self.go_away()
        if head.error is not None:
            exchange.answer(
                Response(400, head.error.encode() + b"\n", _TEXT, [(b"X-Content-Type-Options", b"nosniff")])
            )
        else:
            self._streams.begin(stream, server.now)

    def _refuse_head(self, number: int) -> None:
        # The table is lost with the rest of the block: nothing after this can be read.
        size = len(_TOO_LARGE)
        answer = frames.headers(number, response_head.block(431, b"text/html; charset=utf-8", [], size))
        if size <= min(self._output.window, self._output.initial_window):
            answer += frames.header(size, frames.DATA, frames.END_STREAM, number) + _TOO_LARGE
        self._output.write(answer)
        raise ConnectionFailure(frames.ENHANCE_YOUR_CALM, "header list too large")

    # Bodies

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        self._window -= size
        if self._window < 0:
            raise ConnectionFailure(frames.FLOW_CONTROL_ERROR, "more than the window")
        data = unpad(payload) if flags & frames.PADDED else payload
        ended = bool(flags & frames.END_STREAM)
        if len(data) < 64 and not ended:
            self._patience.spend(patience.FRAME, self._output.useful)
        stream = self._streams.get(number)
        if stream is not None:
            self._feed(stream, data, size, ended)
            return
        if not number or (number > self._last and not self._going_away):
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "data on an idle stream")
        self.credit(size)
        if number <= self._last:
            raise StreamFailure(frames.STREAM_CLOSED, "data on a closed stream")

    def _feed(self, stream: Stream, data: bytes, size: int, ended: bool, trailers: Trailers = ()) -> None:
        stream.receive(data, size, ended, trailers)
        if ended:
            self._streams.body_complete(stream)

    def credit(self, size: int) -> None:
        """Let the client send so much more, on all streams together."""
        self._uncredited += size
        if self._uncredited >= _RECEIVE_WINDOW // 2 and not self._closing:
            self._window += self._uncredited
            self._output.write(frames.window_update(0, self._uncredited))
            self._uncredited = 0

    # Other frames

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "settings of a stream")
        if flags & frames.ACK:
            self._settings.acknowledge(payload)
            return
        growth = self._settings.update(payload, self._output.initial_window)
        if growth:
            self._output.initial_window += growth
            for stream in self._streams.all():
                try:
                    self._widen(stream, growth)
                except StreamFailure as failure:
                    raise ConnectionFailure(failure.code, str(failure)) from failure
        self._output.write(frames.SETTINGS_ACK)

    def _widen(self, stream: Stream, growth: int) -> None:
        if growth > 0:
            stream.enlarge(growth)
        else:
            stream.window += growth

    def _take_ping(self, flags: int, number: int, payload: bytes) -> None:
        if number:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "ping of a stream")
        if not flags & frames.ACK:
            self._output.write(frames.ping_ack(payload))

    def _take_window_update(self, _: int, number: int, payload: bytes) -> None:
        increment = int.from_bytes(payload, "big") & frames.MAX_WINDOW
        if not number:
            self._output.enlarge(increment)
        elif (stream := self._known(number)) is not None:
            stream.enlarge(increment)

    def _take_reset(self, _: int, number: int, __: bytes) -> None:
        stream = self._known(number)
        if stream is not None:
            self._patience.spend(patience.RESET, self._output.useful)
            stream.lose()

    def _known(self, number: int) -> Stream | None:
        if not number or (number > self._last and not self._going_away):
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "about an idle stream")
        return self._streams.get(number)

    def _take_priority(self, _: int, number: int, payload: bytes) -> None:
        if not number:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "priority of no stream")
        if int.from_bytes(payload[:4], "big") & frames.MAX_WINDOW == number:
            raise StreamFailure(frames.PROTOCOL_ERROR, "depends on itself")

    def _take_goaway(self, _: int, number: int, payload: bytes) -> None:
        if number or len(payload) < 8:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "malformed GOAWAY")
        self.go_away()

    def _take_push(self, _: int, __: int, ___: bytes) -> None:
        raise ConnectionFailure(frames.PROTOCOL_ERROR, "clients do not push")

    # Streams

    def forget(self, stream: Stream) -> None:
        """The stream has ended."""
        self._streams.forget(stream)
        if not self._streams:
            self._since = self.server.now
            self.server.polling.expect()
            if self._going_away and not self._closing:
                self._hang_up()

    def mourn(self, exchange: Exchange) -> None:
        """A stream has ended, its handler not yet."""
        self._streams.mourn(exchange)

    def _reset(self, number: int, code: int) -> None:
        self._patience.spend(patience.FRAME, self._output.useful)
        stream = self._streams.get(number)
        if stream is not None:
            stream.reset(code)
        else:
            self._output.write(frames.rst_stream(number, code))

    # Ends

    def go_away(self) -> None:
        """Take no further requests; close when those that have begun are done."""
        if not (self._going_away or self._closing):
            self._going_away = True
            self._output.write(frames.goaway(self._last, frames.NO_ERROR))
            if not self._streams:
                self._hang_up()

    def _fail(self, failure: ConnectionFailure) -> None:
        self._output.write(frames.goaway(self._last, failure.code))
        self._closing = True
        for stream in self._streams.all():
            stream.lose()
        self._hang_up()

    def _hang_up(self) -> None:
        self._closing = True
        self._input.clear()
        self._output.flush()
        self.transport.close()
        if self.server.draining:
            # TLS waits for the client's own goodbye, and clients with idle connections do not look at them.
            self.server.loop.call_later(self.server.limits.goodbye, self.transport.abort)

    def abort(self) -> None:
        """Drop the connection at once."""
        self._closing = True
        self.transport.abort()

    def drain(self) -> None:
        """The server stops."""
        self.go_away()

    def drain_upgraded(self) -> None:
        """Never upgraded."""

    def close_upgraded(self) -> None:
        """Never upgraded."""

    @property
    def idle(self) -> bool:
        """No request is being received or answered."""
        return not self._streams

    def check_time(self, now: float) -> None:
        """Close when idle, or slow with a head, for too long; start handlers whose small bodies are late.

        Answers that the client does not take for too long end as well.
        """
        limits = self.server.limits
        self._patience.recover(now)
        self._streams.start_late(now - limits.body_grace)
        if self._closing:
            return
        if self._output.kept:
            for stream in self._streams.all():
                if stream.is_unread_since(now - limits.unread_timeout):
                    stream.reset(frames.CANCEL)
        waited = now - self._since
        if waited > SILENT_SECONDS:
            self.server.parking.take(self.transport)
        if (self._blocks.unfinished or not self._greeted) and waited > limits.header_timeout:
            self.abort()
        elif not self._streams and waited > limits.idle_timeout:
            self.go_away()


_OTHERS: Final[dict[int, Callable[[Http2Connection, int, int, bytes], None]]] = {
    frames.PRIORITY: Http2Connection._take_priority,
    frames.RST_STREAM: Http2Connection._take_reset,
    frames.SETTINGS: Http2Connection._take_settings,
    frames.PUSH_PROMISE: Http2Connection._take_push,
    frames.PING: Http2Connection._take_ping,
    frames.GOAWAY: Http2Connection._take_goaway,
    frames.WINDOW_UPDATE: Http2Connection._take_window_update,
    frames.CONTINUATION: Http2Connection._take_continuation,
}
