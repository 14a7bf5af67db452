"""One HTTP/2 connection to another server: requests of many, side by side.

    exchange → ClientStream → Output ─ what is asked within one turn of the loop leaves in one piece
    data_received → FrameReader → HEADERS, DATA → ClientStream → Reply

Guarantees: an answer that nobody reads holds up no other, because all that arrives is taken off the connection's window
at once and what a stream may hold is bounded by its own. Heads are bounded as over HTTP/1.1, in size and in the number
of frames; frames that serve nobody are counted (``patience.py``). A request that the server has not looked at (it went
away, or refused the stream) fails as ``ConnectionEnded`` with ``unprocessed``, and may go elsewhere whatever it is.

A connection that is silent while somebody waits is asked for a sign of life, and given up without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from pilothouse.net.client.connection import ConnectionEnded
from pilothouse.net.client.head import MAX_HEAD
from pilothouse.net.client.http2_head import request_block
from pilothouse.net.client.http2_stream import WINDOW, ClientStream
from pilothouse.net.client.outbound import Outbound
from pilothouse.net.client.reply import Reply
from pilothouse.net.dialing.failures import OutgoingError, explain_reading
from pilothouse.net.http2 import frames, patience
from pilothouse.net.http2.frame_reader import FrameReader
from pilothouse.net.http2.frames import ConnectionFailure, StreamFailure
from pilothouse.net.http2.header_blocks import HeaderBlocks, unpad
from pilothouse.net.http2.hpack import HeaderDecoder, HeaderListTooLarge, InvalidBlock
from pilothouse.net.http2.output import Output
from pilothouse.net.http2.patience import Patience
from pilothouse.net.http2.settings import PeerSettings

PING_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 15.0
"""After how much silence a sign of life is asked for, and how long it may take; as client-go has it."""
_ALL_STREAMS_WINDOW: Final = 4 << 20
_NOT_PLAIN: Final = frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY
_FIRST_STREAMS: Final = 100  # until the server says how many it takes
_MOST_UNSENT: Final = 1 << 20
_MOST_STUCK: Final = 4
_LAST_STREAM: Final = (1 << 31) - 1
_PING: Final = frames.header(8, frames.PING, 0, 0) + b"pilotage"
_GREETING: Final = (
    frames.PREFACE
    + frames.settings([(frames.ENABLE_PUSH, 0), (frames.INITIAL_WINDOW_SIZE, WINDOW)])
    + frames.window_update(0, _ALL_STREAMS_WINDOW - frames.DEFAULT_WINDOW)
)


class Http2ClientConnection(asyncio.Protocol):
    """The client's side. ``ended`` is called once it takes no more requests."""

    transport: asyncio.Transport
    _output: Output

    def __init__(
        self,
        ended: Callable[[Http2ClientConnection], object],
        silence: float = PING_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._silence, self._patience_seconds = silence, patience_seconds
        self._ended, self._loop = ended, loop
        self._streams: dict[int, ClientStream] = {}
        self._input = FrameReader(greeted=True)
        self._blocks = HeaderBlocks(MAX_HEAD)
        self._decoder = HeaderDecoder()
        self._settings = PeerSettings(_FIRST_STREAMS)
        self._patience = Patience(loop.time())
        self._greeted = False
        self._next = 1
        self._uncredited = 0
        self._answers = 0
        self._heard = True
        self._watchdog: asyncio.TimerHandle | None = None
        self.stuck = 0
        """Streams whose answers are read slowly."""
        self.leaving = False
        """Whether it takes no more requests."""
        self.idle_since = loop.time()

    # For the client

    @property
    def has_room(self) -> bool:
        """Whether it takes a request now.

        Servers bound what they keep for a connection, and may let requests wait behind answers that are not read.
        """
        if self.leaving or self.stuck >= _MOST_STUCK:
            return False
        return len(self._streams) < max(self._settings.max_streams, 1)

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anything."""
        return not self._streams

    async def exchange(self, outbound: Outbound) -> Reply:
        """Send a request and wait for the head of its answer. Raises OutgoingError."""
        block = request_block(outbound)
        if not self.has_room:
            raise ConnectionEnded("http2: client conn not usable", untouched=True, unprocessed=True)
        stream = ClientStream(self, self._output, self._next, outbound.method)
        self._streams[self._next] = stream
        self._next += 2
        if self._next > _LAST_STREAM:
            self.retire()
        alone = len(self._streams) == 1  # nobody to leave together with
        if alone:
            self._output.hold()
        stream.send(block, outbound)
        if alone:
            self._output.release()
        try:
            return await stream.head
        except BaseException:
            await stream.settle()
            raise

    def retire(self) -> None:
        """Take no more requests, and close once those there are have their answers."""
        if not self.leaving:
            self.leaving = True
            self._ended(self)
        if not self._streams:
            self.transport.close()

    def drop(self) -> None:
        """Close at once."""
        self._end(ConnectionEnded("http2: client connection force closed", untouched=False))

    def forget(self, stream: ClientStream) -> None:
        """A stream has ended."""
        if self._streams.pop(stream.number, None) is not None and not self._streams:
            self.idle_since = self._loop.time()
            if self.leaving:
                self._output.flush()
                self.transport.close()

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._output = Output(self.transport, self._loop)
        self.transport.write(_GREETING)
        self._watch_over(self._silence)

    def pause_writing(self) -> None:
        self._output.paused = True

    def resume_writing(self) -> None:
        self._output.resume()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        words = explain_reading(exc)
        self._end(ConnectionEnded("unexpected EOF" if self._answers and words == "EOF" else words, untouched=True))

    def data_received(self, data: bytes) -> None:
        self._input.feed(data)
        output = self._output
        output.hold()
        try:
            while not self.transport.is_closing() and (frame := self._input.next_frame()) is not None:
                self._take(*frame)
                self._heard = not self._blocks.unfinished  # what trickles is no sign of life
        except (ConnectionFailure, InvalidBlock, HeaderListTooLarge) as error:
            code = error.code if isinstance(error, ConnectionFailure) else frames.COMPRESSION_ERROR
            output.write(frames.goaway(0, code))
            output.flush()
            self._end(OutgoingError(f"http2: {error or 'response header list larger than advertised limit'}"))
        finally:
            output.release()

    # Frames

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._blocks.unfinished:
            frames.check_continued(kind)
        if not self._greeted:
            frames.check_greeting(kind, flags)
            self._greeted = True
        if kind == frames.HEADERS:
            if flags & _NOT_PLAIN == frames.END_HEADERS:
                self._take_fields(number, payload, bool(flags & frames.END_STREAM))
            elif (block := self._blocks.begin(flags, number, payload)) is not None:
                self._take_fields(block.stream, block.data, block.ended)
        elif kind == frames.DATA:
            self._take_data(flags, number, payload)
        else:
            self._spend()
            take = _OTHERS.get(kind)
            if take is not None:  # what is unknown is ignored
                take(self, flags, number, payload)

    def _spend(self) -> None:
        """A frame that may serve nobody."""
        try:
            self._patience.spend(patience.FRAME, self._answers)
        except ConnectionFailure:
            self._patience.recover(self._loop.time())
            self._patience.spend(patience.FRAME, self._answers)

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        block = self._blocks.go_on(flags, number, payload)
        if block is not None:
            self._take_fields(block.stream, block.data, block.ended)

    def _take_fields(self, number: int, data: bytes, ended: bool) -> None:
        fields = self._decoder.decode(data, MAX_HEAD)  # for the sake of the table, whoever it is for
        stream = self._streams.get(number)
        if stream is None:
            return
        self._answers += 1
        try:
            stream.take_fields(fields, ended)
        except StreamFailure as failure:
            stream.reset(failure.code, OutgoingError(str(failure)))

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        size, ended = len(payload), bool(flags & frames.END_STREAM)
        self._uncredited += size
        if self._uncredited >= _ALL_STREAMS_WINDOW // 2:
            self._output.write(frames.window_update(0, self._uncredited))
            self._uncredited = 0
        data = unpad(payload) if flags & frames.PADDED else payload
        if len(data) < 64 and not ended:
            self._spend()
        stream = self._streams.get(number)
        if stream is None:
            return
        try:
            stream.take_data(data, size, ended)
        except StreamFailure as failure:
            stream.reset(failure.code, OutgoingError(str(failure)))

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        if flags & frames.ACK:
            return
        growth = self._settings.update(payload, self._output.initial_window)
        self._output.initial_window += growth
        for stream in list(self._streams.values()):
            try:
                stream.enlarge(growth)
            except StreamFailure as failure:
                raise ConnectionFailure(failure.code, str(failure)) from None
        self._acknowledge(frames.SETTINGS_ACK)

    def _take_window_update(self, _: int, number: int, payload: bytes) -> None:
        increment = int.from_bytes(payload, "big") & frames.MAX_WINDOW
        if not number:
            self._output.enlarge(increment)
        elif (stream := self._streams.get(number)) is not None:
            try:
                stream.enlarge(increment)
            except StreamFailure as failure:
                stream.reset(failure.code, OutgoingError(str(failure)))

    def _take_ping(self, flags: int, _: int, payload: bytes) -> None:
        if not flags & frames.ACK:
            self._acknowledge(frames.ping_ack(payload))

    def _acknowledge(self, frame: bytes) -> None:
        if self._output.paused and self.transport.get_write_buffer_size() > _MOST_UNSENT:
            raise ConnectionFailure(frames.ENHANCE_YOUR_CALM, "what is asked for is not read")
        self._output.write(frame)

    def _take_reset(self, _: int, number: int, payload: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        code = int.from_bytes(payload, "big")
        words = f"stream error: stream ID {number}; {frames.ERROR_NAMES.get(code, code)}; received from peer"
        refused = code == frames.REFUSED_STREAM
        stream.fail(ConnectionEnded(words, untouched=refused, unprocessed=True) if refused else OutgoingError(words))

    def _take_goaway(self, _: int, __: int, payload: bytes) -> None:
        last = int.from_bytes(payload[:4], "big") & _LAST_STREAM
        words = "http2: Transport received Server's graceful shutdown GOAWAY"
        self.retire()
        for number in [number for number in self._streams if number > last]:
            self._streams[number].fail(ConnectionEnded(words, untouched=True, unprocessed=True))

    def _take_push(self, _: int, __: int, ___: bytes) -> None:
        raise ConnectionFailure(frames.PROTOCOL_ERROR, "nothing was to be pushed")

    # Ends

    def _end(self, error: OutgoingError) -> None:
        for stream in list(self._streams.values()):
            stream.fail(error)
        self._input.clear()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        if not self.leaving:
            self.leaving = True
            self._ended(self)
        self.transport.abort()

    def _watch_over(self, seconds: float, *, asked: bool = False) -> None:
        self._heard = False
        self._watchdog = self._loop.call_later(seconds, self._examine, asked)

    def _examine(self, asked: bool) -> None:
        if self._heard or not self._streams:
            self._watch_over(self._silence)
        elif not asked:
            self._output.write(_PING)
            self._watch_over(self._patience_seconds, asked=True)
        else:
            self._end(OutgoingError("http2: client connection lost"))


_OTHERS: Final[dict[int, Callable[[Http2ClientConnection, int, int, bytes], None]]] = {
    frames.RST_STREAM: Http2ClientConnection._take_reset,
    frames.SETTINGS: Http2ClientConnection._take_settings,
    frames.PUSH_PROMISE: Http2ClientConnection._take_push,
    frames.PING: Http2ClientConnection._take_ping,
    frames.GOAWAY: Http2ClientConnection._take_goaway,
    frames.WINDOW_UPDATE: Http2ClientConnection._take_window_update,
    frames.CONTINUATION: Http2ClientConnection._take_continuation,
}
