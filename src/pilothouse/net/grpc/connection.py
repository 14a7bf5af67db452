"""One HTTP/2 connection of a gRPC client.

A call that fits into the windows, and nearly every call does, is one piece: its head and its message together. What
does not fit waits with its call until the server has made room. A piece is written at once where nobody waits for an
answer; else it waits for the end of the turn and is written with all others of that turn, because the kernel's part of
a write costs as much as the making of a call. The heads of answers come in a handful of forms, which are decoded once
(`HeaderDecoder.version` says when a form means something else).

Time-outs of calls need no timer each: there is one for the next that may be due, and it is set anew when it rings.
Servers that measure the way to them ask for a sign of life with the first bytes after each sign they got; the answer
is kept back for some milliseconds, or every call would bring such a question, to be read and answered by itself.

A connection that is told to go away takes no new calls and finishes those it has. One that is silent for long while
somebody waits is asked for a sign of life, and given up without one.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final, cast

from pilothouse.net.dialing.failures import explain_reading
from pilothouse.net.grpc.calls import WINDOW, Call
from pilothouse.net.grpc.failures import RpcError, reset_failure
from pilothouse.net.http2 import frames
from pilothouse.net.http2.frame_reader import FrameReader
from pilothouse.net.http2.frames import ConnectionFailure
from pilothouse.net.http2.hpack import Field, HeaderDecoder, HeaderListTooLarge, InvalidBlock

PING_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 5.0
"""After how much silence a sign of life is asked for, and how long it may take."""
_ALL_CALLS_WINDOW: Final = 16 << 20
_LAST_STREAM: Final = (1 << 31) - 1
_MAX_HEADERS: Final = 64 * 1024
_KNOWN_HEADS: Final = 64
_NOT_PLAIN: Final = frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY
_SIGN_SECONDS: Final = 0.01
"""How long an answer to a ping is kept back."""
_MOST_GATHERED: Final = 64 * 1024
"""So many bytes are not kept back until the end of a turn."""
_CLOCK_SECONDS: Final = 0.001
"""Timers of the loop are that exact."""
_PING: Final = frames.header(8, frames.PING, 0, 0) + b"pilotage"


class GrpcConnection(asyncio.Protocol):
    """The client's end."""

    def __init__(self) -> None:
        self._calls: dict[int, Call] = {}
        self._blocked: dict[int, Call] = {}
        self._reader = FrameReader(greeted=True)
        self._decoder = HeaderDecoder()
        self._known: dict[bytes, tuple[int, list[Field]]] = {}
        self._block: tuple[int, int, list[bytes]] | None = None
        self._next = 1
        self._window = self._stream_window = frames.DEFAULT_WINDOW
        self._max_frame, self._max_calls = frames.FRAME_SIZE, _LAST_STREAM
        self._returned = 0
        self._heard = True
        self._watchdog: asyncio.TimerHandle | None = None
        self._next_look = inf
        self._looking: asyncio.TimerHandle | None = None
        self._signs = b""
        self._signing: asyncio.TimerHandle | None = None
        self._gathered: list[bytes] | None = None
        """What is written at the end of this turn; None while everything is written at once."""
        self._gathered_size = 0
        self._awaited = 0
        """How many calls of one message wait for their answer."""
        self._transport: asyncio.Transport | None = None
        self._room: list[asyncio.Future[None]] = []
        self.is_leaving = False
        """Whether it takes no new calls."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.greeted: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Empty once the server has shown its settings, as it does before anything else; or why it will not."""

    # Calling

    def begin(self, call: Call, head: bytes, data: bytes) -> None:
        """Open a stream with a head and its first bytes. Raises RpcError when there is no connection any more."""
        if self.is_leaving or self._transport is None:
            raise RpcError("UNAVAILABLE", "the connection is closing", sent=False)
        call.number, call.window = self._next, self._stream_window
        self._next += 2
        self.is_leaving = self._next > _LAST_STREAM
        self._calls[call.number] = call
        if call.deadline < self._next_look:
            self._look_at(call.deadline)
        if self._awaited and self._gathered is None:
            self._gathered = []
            asyncio.get_running_loop().call_soon(self._flush)
        self._awaited += call.ends_by_itself
        start = frames.headers(call.number, head)
        size = len(data)
        if size <= self._window and size <= call.window and size <= self._max_frame:
            call.window -= size
            self._window -= size
            end = frames.END_STREAM if call.ends_by_itself else 0
            self._write(b"".join((start, frames.header(size, frames.DATA, end, call.number), data)))
        else:
            self._write(start)
            self.send(call, data)

    def send(self, call: Call, data: bytes) -> None:
        """More bytes of a call. None at all: what was received has been read."""
        if call.number not in self._calls:
            return
        if data:
            call.outgoing = memoryview(b"".join((call.outgoing, data)) if call.outgoing else data)
            self._blocked[call.number] = call
            self._pump()
        elif call.returned >= WINDOW // 2:
            self._write(frames.window_update(call.number, call.returned))
            call.returned = 0

    def cancel(self, call: Call, error: RpcError) -> None:
        """Give a call up."""
        if self._calls.get(call.number) is call:
            self._write(frames.rst_stream(call.number, frames.CANCEL))
            self._forget(call)
        call.fail(error)

    @property
    def is_full(self) -> bool:
        """Whether the server takes no more calls just now."""
        return len(self._calls) >= self._max_calls

    async def wait_for_room(self) -> None:
        """Wait until a call has ended."""
        future = asyncio.get_running_loop().create_future()
        self._room.append(future)
        await future

    def close(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)
        self._transport = transport
        wanted = [(frames.ENABLE_PUSH, 0), (frames.INITIAL_WINDOW_SIZE, WINDOW)]
        more = frames.window_update(0, _ALL_CALLS_WINDOW - frames.DEFAULT_WINDOW)
        transport.write(frames.PREFACE + frames.settings(wanted) + more)
        self._watch_over(PING_SECONDS)

    def connection_lost(self, error: Exception | None) -> None:
        reading = explain_reading(error)
        if not self.greeted.done():
            self.greeted.set_result(f"error reading server preface: {reading}")
        self._end(RpcError("UNAVAILABLE", f"error reading from server: {reading}"))

    def data_received(self, data: bytes) -> None:
        self._heard = True
        self._reader.feed(data)
        try:
            while found := self._reader.next_frames():
                for kind, flags, stream, payload in found:
                    self._take(kind, flags, stream, payload)
        except (ConnectionFailure, InvalidBlock, HeaderListTooLarge) as error:
            if not self.greeted.done():
                self.greeted.set_result(f"error reading server preface: {error}")
            self._end(RpcError("UNAVAILABLE", f"connection error: {error}"))

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and kind != frames.CONTINUATION:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "a header block was interrupted")
        if kind == frames.DATA:
            self._take_data(flags, stream, payload)
        elif kind == frames.HEADERS:
            self._take_headers(flags, stream, payload)
        elif kind == frames.CONTINUATION:
            self._take_continuation(flags, payload)
        elif kind == frames.WINDOW_UPDATE:
            self._take_room(stream, int.from_bytes(payload, "big"))
        elif kind == frames.PING and not flags & frames.ACK:
            self._answer_ping(payload)
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            self._take_settings(payload)
        elif kind == frames.RST_STREAM and (call := self._calls.get(stream)) is not None:
            self._forget(call)
            call.fail(reset_failure(int.from_bytes(payload, "big"), in_time=call.deadline > _latest()))
        elif kind == frames.GOAWAY:
            self._leave(int.from_bytes(payload[:4], "big") & _LAST_STREAM)

    def _take_data(self, flags: int, stream: int, payload: bytes) -> None:
        self._returned += len(payload)
        if self._returned >= _ALL_CALLS_WINDOW // 2:
            self._write(frames.window_update(0, self._returned))
            self._returned = 0
        call = self._calls.get(stream)
        if call is None:
            return
        call.returned += len(payload)
        end = bool(flags & frames.END_STREAM)
        if end:
            self._forget(call)
        data = _unpadded(flags, payload) if flags & frames.PADDED else payload
        if call.take_data(data, end) and call.returned >= WINDOW // 2:
            self.send(call, b"")

    def _take_headers(self, flags: int, stream: int, payload: bytes) -> None:
        if flags & _NOT_PLAIN == frames.END_HEADERS:
            self._take_block(flags, stream, payload)
            return
        block = _unpadded(flags, payload)
        if flags & frames.WITH_PRIORITY:
            block = block[5:]
        if flags & frames.END_HEADERS:
            self._take_block(flags, stream, block)
        else:
            self._block = flags, stream, [block]

    def _take_continuation(self, flags: int, payload: bytes) -> None:
        if self._block is None:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "a continuation of nothing")
        first, stream, pieces = self._block
        pieces.append(payload)
        if sum(map(len, pieces)) > _MAX_HEADERS:
            raise HeaderListTooLarge
        if flags & frames.END_HEADERS:
            self._block = None
            self._take_block(first, stream, b"".join(pieces))

    def _take_block(self, flags: int, stream: int, block: bytes) -> None:
        version = self._decoder.version
        known = self._known.get(block)
        if known is not None and known[0] == version:
            fields = known[1]
        else:
            fields = self._decoder.decode(block, _MAX_HEADERS)
            if self._decoder.version == version:
                self._remember(block, fields)
        call = self._calls.get(stream)
        if call is None:
            return
        end = bool(flags & frames.END_STREAM)
        if end:
            self._forget(call)
        call.take_headers(fields, end)

    def _remember(self, block: bytes, fields: list[Field]) -> None:
        if len(self._known) >= _KNOWN_HEADS:
            self._known.clear()
        self._known[block] = self._decoder.version, fields

    def _take_settings(self, payload: bytes) -> None:
        for at in range(0, len(payload) - 5, 6):
            name = int.from_bytes(payload[at : at + 2], "big")
            value = int.from_bytes(payload[at + 2 : at + 6], "big")
            if name == frames.INITIAL_WINDOW_SIZE:
                for call in self._calls.values():
                    call.window += value - self._stream_window
                self._stream_window = value
            elif name == frames.MAX_FRAME_SIZE:
                self._max_frame = value
            elif name == frames.MAX_CONCURRENT_STREAMS:
                self._max_calls = max(value, 1)
        self._write(frames.SETTINGS_ACK)
        self._pump()
        if not self.greeted.done():
            self.greeted.set_result("")

    def _take_room(self, stream: int, more: int) -> None:
        if not stream:
            self._window += more
        elif (call := self._calls.get(stream)) is not None:
            call.window += more
        if self._blocked:
            self._pump()

    def _leave(self, last: int) -> None:
        self.is_leaving = True
        for call in [call for number, call in self._calls.items() if number > last]:
            self._forget(call)
            call.fail(RpcError("UNAVAILABLE", "the server is going away", sent=False))
        self._close_if_idle()

    # Inside

    def _pump(self) -> None:
        """Send what has room."""
        for call in tuple(self._blocked.values()):
            while call.outgoing and (size := min(len(call.outgoing), self._window, call.window, self._max_frame)) > 0:
                piece, call.outgoing = call.outgoing[:size], call.outgoing[size:]
                call.window -= size
                self._window -= size
                end = frames.END_STREAM if call.ends_by_itself and not call.outgoing else 0
                self._write(b"".join((frames.header(size, frames.DATA, end, call.number), piece)))
            if not call.outgoing:
                del self._blocked[call.number]

    def _forget(self, call: Call) -> None:
        if self._calls.pop(call.number, None) is not None:
            self._awaited -= call.ends_by_itself
        self._blocked.pop(call.number, None)
        if self._room:
            room, self._room = self._room, []
            for future in room:
                if not future.done():
                    future.set_result(None)
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self.is_leaving and not self._calls and self._transport is not None:
            self._flush()
            self._transport.close()

    def _end(self, error: RpcError) -> None:
        self.is_leaving = True
        calls = list(self._calls.values())
        for call in calls:
            self._forget(call)
            call.fail(error)
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        for timer in (self._watchdog, self._looking, self._signing):
            if timer is not None:
                timer.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def _write(self, data: bytes) -> None:
        """Send bytes behind all that was sent before: at once, or with what is gathered in this turn."""
        if self._gathered is not None:
            self._gathered.append(data)
            self._gathered_size += len(data)
            if self._gathered_size > _MOST_GATHERED:
                self._flush()
        elif self._transport is not None:
            self._transport.write(data)

    def _flush(self) -> None:
        gathered, self._gathered, self._gathered_size = self._gathered, None, 0
        if gathered and self._transport is not None:
            self._transport.write(b"".join(gathered))

    def _answer_ping(self, payload: bytes) -> None:
        self._signs += frames.ping_ack(payload)
        if self._signing is None:
            self._signing = asyncio.get_running_loop().call_later(_SIGN_SECONDS, self._send_signs)

    def _send_signs(self) -> None:
        signs, self._signs, self._signing = self._signs, b"", None
        if signs:
            self._write(signs)

    def _look_at(self, when: float) -> None:
        """Have a look at the calls when the first of them may be too late."""
        if self._looking is not None:
            self._looking.cancel()
        self._next_look = when
        self._looking = None if when == inf else asyncio.get_running_loop().call_at(when, self._look)

    def _look(self) -> None:
        late = _latest()
        for call in [call for call in self._calls.values() if call.deadline <= late]:
            self.cancel(call, RpcError("DEADLINE_EXCEEDED", "context deadline exceeded"))
        self._look_at(min((call.deadline for call in self._calls.values()), default=inf))

    def _watch_over(self, seconds: float) -> None:
        self._heard = False
        self._watchdog = asyncio.get_running_loop().call_later(seconds, self._examine, seconds)

    def _examine(self, waited: float) -> None:
        if self._heard or not self._calls:
            self._watch_over(PING_SECONDS)
        elif waited == PING_SECONDS:
            self._write(_PING)
            self._watch_over(PATIENCE_SECONDS)
        else:
            self._end(RpcError("UNAVAILABLE", "keepalive ping failed to receive ACK within timeout"))


def _latest() -> float:
    """What is too late by now, for a clock that may be a little behind."""
    return asyncio.get_running_loop().time() + _CLOCK_SECONDS


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & frames.PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailure(frames.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
