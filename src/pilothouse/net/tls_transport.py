"""A TLS connection that encrypts straight into its socket.

The loop's own TLS passes every piece through two memory buffers and a state machine between them; to write a short
answer or a watch event that costs as much again as the encryption. Here OpenSSL reads from and writes to the socket
itself, and the loop only says when that may go on (see docs/investigations/watch-fan-out.md).

What is guaranteed: pieces leave in the order in which they were written; nothing is read while reading is paused;
the protocol hears `connection_lost` exactly once, never from within a call of its own; `close` sends what is buffered,
says goodbye as TLS wants it, and then drops what still arrives until the client closes too, because a socket closed
over unread input resets the connection and takes the end of the answer with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

logger = logging.getLogger(__name__)

_RECORD: Final = 16 * 1024  # what TLS puts into one record at most
_RECORDS_A_TURN: Final = 16
_READ: Final = 64 * 1024
_JOINED: Final = 60 * 1024
_HIGH_WATER: Final = 64 * 1024
_LOW_WATER: Final = 16 * 1024
_FLUSH_SECONDS: Final = 30.0  # how long a closed connection may take to send what is buffered
_FAREWELL_SECONDS: Final = 2.0


class Handshake:
    """The beginning of a TLS connection: `done` gets the socket once, or None if there will be no connection."""

    __slots__ = ("_done", "_fd", "_loop", "_sock", "_timer", "_writing")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        context: ssl.SSLContext,
        seconds: float,
        done: Callable[[Handshake, ssl.SSLSocket | None], None],
    ) -> None:
        """Take over a connected, non-blocking socket."""
        self._loop = loop
        self._sock = context.wrap_socket(
            sock, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=False
        )
        self._fd = self._sock.fileno()
        self._done = done
        self._writing = False
        self._timer = loop.call_later(seconds, self.abandon)
        loop.add_reader(self._fd, self._step)

    def abandon(self) -> None:
        """End it without a connection."""
        self._leave()
        self._sock.close()
        self._done(self, None)

    def _step(self) -> None:
        try:
            self._sock.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLWantWriteError:
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._step)
            return
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: a name that is none
            logger.debug("TLS handshake failed: %s", error)
            with suppress(OSError):
                os.read(self._fd, _READ)  # a socket closed over unread input resets the connection and loses the alert
            self.abandon()
            return
        self._leave()
        self._done(self, self._sock)

    def _leave(self) -> None:
        self._timer.cancel()
        self._loop.remove_reader(self._fd)
        if self._writing:
            self._loop.remove_writer(self._fd)


class TlsTransport(asyncio.Transport):
    """An established connection."""

    __slots__ = (
        "_buffer",
        "_buffered",
        "_clear",
        "_closing",
        "_fd",
        "_input_ended",
        "_loop",
        "_lost",
        "_protocol",
        "_protocol_paused",
        "_reading",
        "_session",
        "_sock",
        "_stuck",
        "_timer",
        "_writing",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: ssl.SSLSocket, protocol: asyncio.BufferedProtocol
    ) -> None:
        """Take over a socket whose handshake is done, and tell the protocol."""
        super().__init__()
        self._loop = loop
        self._sock = sock
        self._session: Any = sock._sslobj  # type: ignore[attr-defined]  # as `sock` does it, without its detours
        self._clear: Any = self._session  # None once a piece may not go straight into it any more
        self._fd = sock.fileno()
        self._protocol = protocol
        self._buffer: deque[bytes] = deque()
        self._stuck: bytes | None = None  # begun and refused: OpenSSL wants to see this very piece again
        self._buffered = 0
        self._protocol_paused = False
        self._input_ended = False
        self._closing = False  # no more input for the protocol, no more output from it
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._writing = False  # the loop calls `_writable`
        self._reading = True  # the loop calls `_readable`, or `_discard` at the end
        loop.add_reader(self._fd, self._readable)
        protocol.connection_made(self)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name in ("ssl_object", "socket"):
            return self._sock
        with suppress(OSError):  # a client that is gone already has no name
            if name == "peername":
                return self._sock.getpeername()
            if name == "sockname":
                return self._sock.getsockname()
        return default

    def is_closing(self) -> bool:
        return self._closing

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    # Reading

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        if self._reading and not self._closing:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if not self._reading and not self._closing:
            self._reading = True
            self._loop.add_reader(self._fd, self._readable)

    def _readable(self) -> None:
        protocol = self._protocol
        for _ in range(_RECORDS_A_TURN):
            try:
                count = self._session.read(_RECORD, protocol.get_buffer(_RECORD))
            except ssl.SSLWantReadError:
                return
            except ssl.SSLWantWriteError:
                self._await_writable()
                return
            except ssl.SSLEOFError:
                count = 0
            except OSError as error:
                self._vanish(error)
                return
            if not count:
                self._end_input()
                return
            try:
                protocol.buffer_updated(count)
            except Exception as error:
                logger.exception("a connection failed over its input")
                self._vanish(error)
                return
            # A shorter record is likely the last; if it was not, the loop calls again.
            if count < _RECORD or not self._reading or self._closing:
                return

    def _end_input(self) -> None:
        self._input_ended = True
        self._stop_reading()
        self._protocol.eof_received()
        self.close()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        session = self._clear
        if session is None or not data:
            self._append(data)
            return
        try:
            session.write(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._clear = None
            self._stuck = bytes(data)
            self._buffered = len(data)
            self._await_writable()
            self._pause_protocol()
        except OSError as error:
            self._vanish(error)

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write pieces of which the first is short: it shares its record with the beginning of the next."""
        first, *others = pieces
        for other in others:
            room = max(_RECORD - len(first), 0)
            self.write(b"".join((first, memoryview(other)[:room])))
            first = memoryview(other)[room:]
        self.write(first)

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        if data and not self._closing:
            self._buffer.append(bytes(data))
            self._buffered += len(data)
            self._pause_protocol()

    def _await_writable(self) -> None:
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._writable)

    def _writable(self) -> None:
        for _ in range(_RECORDS_A_TURN):
            piece = self._stuck
            if piece is None:
                if not self._buffer:
                    break
                piece = self._next_piece()
            try:
                self._session.write(piece)
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                self._stuck = piece
                return
            except OSError as error:
                self._vanish(error)
                return
            self._stuck = None
            self._buffered -= len(piece)
            self._resume_protocol()
        if not self._buffered and self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
            if self._closing:
                self._say_goodbye()
            else:
                self._clear = self._session

    def _next_piece(self) -> bytes:
        buffer = self._buffer
        piece = buffer.popleft()
        if not buffer or len(piece) + len(buffer[0]) > _JOINED:
            return piece
        pieces, size = [piece], len(piece)
        while buffer and size + len(buffer[0]) <= _JOINED:
            piece = buffer.popleft()
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)

    def get_write_buffer_size(self) -> int:
        return self._buffered

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return _LOW_WATER, _HIGH_WATER

    def _pause_protocol(self) -> None:
        if self._buffered > _HIGH_WATER and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def _resume_protocol(self) -> None:
        if self._protocol_paused and self._buffered <= _LOW_WATER:
            self._protocol_paused = False
            self._protocol.resume_writing()

    # The end

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._clear = None
        self._stop_reading()
        self._timer = self._loop.call_later(_FLUSH_SECONDS, self._vanish, None)
        if not self._buffered:
            self._say_goodbye()

    def abort(self) -> None:
        self._vanish(None)

    def _say_goodbye(self) -> None:
        # What may be complained of is the client's side of it, which is not waited for, or that it has gone.
        with suppress(OSError):
            self._session.shutdown()
        with suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_WR)
        if self._input_ended:
            self._vanish(None)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_FAREWELL_SECONDS, self._vanish, None)
        self._reading = True
        self._loop.add_reader(self._fd, self._discard)

    def _discard(self) -> None:
        try:
            if os.read(self._fd, _READ):
                return
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            pass
        self._vanish(None)

    def _vanish(self, error: Exception | None) -> None:
        """Leave the loop at once and tell the protocol soon."""
        if self._lost:
            return
        self._lost = self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        self._stop_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._clear = self._stuck = None
        self._buffer.clear()
        self._buffered = 0
        self._loop.call_soon(self._tell_lost, error)

    def _tell_lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._sock.close()
