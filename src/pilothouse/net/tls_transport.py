"""A TLS connection: one step from the socket to the protocol, one from the protocol to the socket.

The loop's own TLS has a state machine and queues between the two, which cost as much as the encryption when what is
written is short, as most answers and watch events are. Here what the protocol writes is encrypted and sent in the same
call (see docs/investigations/watch-fan-out.md). Of what is longer than a piece, no more is encrypted than the client
takes: the rest waits as it was given, so that an event of a megabyte is kept once for all who do not read it.

What is guaranteed: pieces leave in the order in which they were written; nothing is read while reading is paused;
the protocol hears `connection_lost` exactly once, never from within a call of its own; `close` sends what is buffered,
says goodbye as TLS wants it, and then drops what still arrives until the client closes too, because a socket closed
over unread input resets the connection and takes the end of the answer with it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, cast

from pilothouse.net.greetings import Greetings
from pilothouse.net.parking import Parking
from pilothouse.net.reading_turns import turns_of

logger = logging.getLogger(__name__)

_READ: Final = 128 * 1024  # what is read, decrypted and passed on at once: more leaves the processor's caches
_RECORD: Final = 16 * 1024  # what TLS puts into one record at most
_MORSEL: Final = 2 * _RECORD  # what TLS is given at once: its buffer never becomes smaller again
_SENDS_A_TURN: Final = 16
# What is encrypted at once; the memory of a TLS session never becomes smaller again. A batch of a long body is less
# (`writing.BATCH` and the part that completes it): cut in two it would take a fifth more time, and a call more.
_PIECE: Final = 96 * 1024
_HIGH_WATER: Final = 256 * 1024
_LOW_WATER: Final = 64 * 1024
_FLUSH_SECONDS: Final = 30.0  # how long a closed connection may take to send what is buffered
_FAREWELL_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 1.0  # after which a handshake no longer keeps others from beginning theirs
_NOT_NOW: Final = (BlockingIOError, InterruptedError)
_NOBODY: Final = asyncio.Protocol()


class _Scratch(threading.local):
    """Room for input that is on its way from a socket to a protocol, for all connections of a loop."""

    def __init__(self) -> None:
        # For all that is read at once, and the record that was incomplete before.
        self.view = memoryview(bytearray(_READ + 2 * _RECORD))


SCRATCH: Final = _Scratch()


class Session:
    """A socket and the encryption between it and us."""

    __slots__ = ("incoming", "outgoing", "sock", "tls")

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_name: str | None = None) -> None:
        """With the name of a server, we are its client. Raises ValueError for a name that is none."""
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        is_server = server_name is None
        self.tls = context.wrap_bio(
            self.incoming, self.outgoing, server_side=is_server, server_hostname=server_name or None
        )

    def answer(self) -> None:
        """Send what the protocol of TLS wants to say, to a client that has room for these few kilobytes or is gone."""
        with suppress(OSError):
            self.sock.send(self.outgoing.read())


class Handshake:
    """The beginning of a TLS connection: `done` gets the session once, or None if there will be no connection.
    `stalls` is told when that takes longer than clients take which mean it."""

    __slots__ = ("_address", "_done", "_fd", "_greetings", "_loop", "_over", "_session", "_stalls", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        address: str,
        context: ssl.SSLContext,
        seconds: float,
        greetings: Greetings,
        stalls: Callable[[Handshake], None],
        done: Callable[[Handshake, Session | None], None],
    ) -> None:
        """Take over a connected, non-blocking socket of a client at ``address``."""
        self._loop = loop
        self._greetings = greetings
        self._address = address
        self._over = False
        self._session = Session(sock, context)
        self._fd = sock.fileno()
        self._stalls, self._done = stalls, done
        self._timer = loop.call_later(min(seconds, _PATIENCE_SECONDS), self._stall, seconds - _PATIENCE_SECONDS)

    def begin(self) -> None:
        """Answer what the client has said so far."""
        self._step()

    def abandon(self) -> None:
        """End it without a connection."""
        self._leave()
        self._session.sock.close()
        self._done(self, None)

    def _stall(self, seconds_left: float) -> None:
        if seconds_left <= 0:
            self.abandon()
            return
        self._timer = self._loop.call_later(seconds_left, self.abandon)
        self._stalls(self)

    def _readable(self) -> None:
        self._loop.remove_reader(self._fd)  # or the loop would call at every turn until it is done
        self._greetings.go_on(self._step, self._address)

    def _step(self) -> None:
        if self._over:
            return
        session = self._session
        try:
            data = session.sock.recv(_RECORD)
            if not data:
                raise ConnectionResetError("closed by the client")
            session.incoming.write(data)
            session.tls.do_handshake()
            session.answer()
        except _NOT_NOW:
            self._loop.add_reader(self._fd, self._readable)
        except ssl.SSLWantReadError:
            session.answer()
            self._loop.add_reader(self._fd, self._readable)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: a name that is none
            logger.debug("TLS handshake failed: %s", error)
            session.answer()  # the alert
            self.abandon()
        else:
            self._leave()
            self._done(self, session)

    def _leave(self) -> None:
        self._over = True
        self._timer.cancel()
        self._loop.remove_reader(self._fd)


class TlsTransport(asyncio.Transport):
    """An established connection."""

    __slots__ = (
        "_buffer",
        "_buffered",
        "_closing",
        "_end",
        "_fd",
        "_incoming",
        "_input_ended",
        "_loop",
        "_lost",
        "_muted",
        "_outgoing",
        "_parking",
        "_plain",
        "_postponed",
        "_protocol",
        "_protocol_paused",
        "_reading",
        "_scratch",
        "_session",
        "_sock",
        "_timer",
        "_tls",
        "_turns",
        "_undecrypted",
        "_writing",
        "credit",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, session: Session, protocol: asyncio.Protocol) -> None:
        """Take over a session whose handshake is done, and tell the protocol, which may be replaced by another."""
        super().__init__()
        self._loop = loop
        self._session = session
        self._sock, self._incoming, self._outgoing = session.sock, session.incoming, session.outgoing
        self._tls: Any = session.tls._sslobj  # type: ignore[attr-defined]  # what `tls` calls, without its detours
        self._fd = session.sock.fileno()
        self._scratch = SCRATCH.view
        self._protocol = protocol
        self._buffer: deque[bytes | memoryview] = deque()  # encrypted already
        self._undecrypted = memoryview(b"")  # of what was read, what TLS was not given yet
        self._plain: deque[memoryview] = deque()  # not encrypted yet: none but behind what is
        self._buffered = 0  # of both
        self._protocol_paused = False
        self._input_ended = False
        self._end: ssl.SSLError | bool = (
            False  # what came right behind input that was handed over: a goodbye, or trouble
        )
        self._closing = False  # no more input for the protocol, no more output from it
        self._lost = False
        self._timer: asyncio.TimerHandle | None = None
        self._writing = False  # the loop calls `_writable`
        self._reading = True  # the loop calls `_readable`, or `_discard` at the end
        self._turns = turns_of(loop)
        self.credit = 0  # kept by the turns
        self._postponed = False  # too many others had something to say: `read_late` will be called
        self._muted = False  # and until then the loop does not call `_readable`, whatever `_reading` says
        self._parking: Parking | None = None  # which then calls `_readable` instead of the loop
        self._listen(self._readable)
        protocol.connection_made(self)
        if session.incoming.pending:
            loop.call_soon(self._decrypt)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "ssl_object":
            return self._session.tls
        if name == "socket":
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

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    # Reading

    def park(self, parking: Parking) -> None:
        """Have others who are silent too, and not the loop, tell of input from now on."""
        if self._parking is not None or self._lost:
            return
        if self._reading and not self._closing and not self._muted:
            self._listen_no_more()
            self._parking = parking
            self._listen(self._readable)

    def _listen(self, reader: Callable[[], None]) -> None:
        (self._loop.add_reader if self._parking is None else self._parking.add)(self._fd, reader)

    def _listen_no_more(self) -> None:
        (self._loop.remove_reader if self._parking is None else self._parking.remove)(self._fd)

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        if self._reading and not self._closing:
            self._reading = False
            self._listen_no_more()

    def resume_reading(self) -> None:
        if not self._reading and not self._closing:
            self._reading = True
            self._listen(self._readable)
            self._loop.call_soon(self._decrypt)

    def _readable(self) -> None:
        if self._postponed:
            # It waits for a second turn, so others are many: reminders of all of them take longer than a turn.
            self._muted = True
            self._listen_no_more()
            return
        if self._turns.admits(self):
            self._read()
            self._turns.has_read(self)
        else:
            self._postponed = True

    def read_late(self) -> None:
        self._postponed = False
        if self._reading and not self._closing:
            if self._muted:
                self._listen(self._readable)
            self._read()
        self._muted = False

    def _read(self) -> None:
        scratch = self._scratch
        try:
            count = self._sock.recv_into(scratch, _READ)
        except _NOT_NOW:
            return
        except OSError as error:
            self._vanish(error)
            return
        if count:
            if count <= _MORSEL and not self._undecrypted:
                self._incoming.write(scratch[:count])
            else:
                self._undecrypted = memoryview(b"".join((self._undecrypted, scratch[:count])))
            self._decrypt()
        else:
            self._end_input()

    def _decrypt(self) -> None:
        """Hand over what is here. The scratch has room for a record, so that TLS itself keeps nothing back."""
        incoming, scratch = self._incoming, self._scratch
        try:
            while self._reading and not self._closing and (incoming.pending or self._end or self._feed()):
                try:
                    count = self._face_end() if self._end else self._tls.read(_READ, scratch)
                except ssl.SSLWantReadError:
                    if self._feed():
                        continue
                    break
                if count and (incoming.pending or self._feed()):
                    count = self._decrypt_further(count)
                if not count:
                    self._end_input()
                    return
                self._protocol.data_received(scratch[:count].tobytes())
        except Exception as error:
            if not isinstance(error, OSError):
                logger.exception("a connection failed over its input")
            self._vanish(error)
            return
        if not self._closing:
            self._send_encrypted()  # what the protocol of TLS wants to say

    def _feed(self) -> bool:
        """Give TLS a morsel of what was read; whether there was one."""
        rest = self._undecrypted
        if not rest:
            return False
        self._incoming.write(rest[:_MORSEL])
        self._undecrypted = rest[_MORSEL:]
        return True

    def _decrypt_further(self, filled: int) -> int:
        """Decrypt further records that are here, as many as fit, to hand them over together with the first.

        One after the other they would be encrypted and sent one by one where they are passed on, and a system call for
        each record costs as much as its encryption.
        """
        read, incoming, scratch = self._tls.read, self._incoming, self._scratch
        count, room = filled, len(scratch) - _RECORD
        while count and filled <= room and (incoming.pending or self._feed()):
            try:
                count = read(_READ, scratch[filled:])
            except ssl.SSLWantReadError:
                if not self._feed():
                    break
                continue
            except ssl.SSLError as error:
                self._end = error
                break
            filled += count
            self._end = not count  # not told before the protocol has had, and wants no pause after, what came before
        return filled

    def _face_end(self) -> int:
        if isinstance(self._end, ssl.SSLError):
            raise self._end
        return 0

    def _end_input(self) -> None:
        self._input_ended = True
        self._stop_reading()
        self._protocol.eof_received()
        self.close()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._listen_no_more()

    # Writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        try:
            if len(data) > _PIECE or self._plain:
                self._write_at_pace(data)
                return
            self._tls.write(data)
        except OSError as error:
            self._vanish(error)
        else:
            self._send(self._outgoing.read())

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        if self._closing:
            return
        size = 0
        try:
            for piece in pieces:
                if size + len(piece) > _PIECE or self._plain:
                    self._send_encrypted()
                    self._write_at_pace(piece)
                    size = 0
                elif piece:
                    self._tls.write(piece)
                    size += len(piece)
        except OSError as error:
            self._vanish(error)
        else:
            self._send_encrypted()

    def _send_encrypted(self) -> None:
        if self._outgoing.pending:
            self._send(self._outgoing.read())

    def _write_at_pace(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt what leaves at once and keep the rest. Raises OSError."""
        view = memoryview(data if isinstance(data, bytes) else bytes(data)).cast("B")
        self._buffered += len(view)
        self._plain.append(view)
        self._encrypt()
        self._pause_protocol()

    def _encrypt(self) -> None:
        """Go on while it leaves at once. Raises OSError."""
        plain = self._plain
        while plain and not self._buffer:
            view = plain.popleft()
            if len(view) > _PIECE:
                plain.appendleft(view[_PIECE:])
                view = view[:_PIECE]
            self._buffered -= len(view)
            self._tls.write(view)
            self._send(self._outgoing.read())

    def _send(self, piece: bytes) -> None:
        if self._buffer:
            self._keep(piece)
            return
        try:
            sent = self._sock.send(piece)
        except _NOT_NOW:
            self._keep(piece)
        except OSError as error:
            self._vanish(error)
        else:
            if sent < len(piece):
                self._keep(memoryview(piece)[sent:])

    def _keep(self, piece: bytes | memoryview) -> None:
        self._buffer.append(piece)
        self._buffered += len(piece)
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._writable)
        self._pause_protocol()

    def _pause_protocol(self) -> None:
        if self._buffered > _HIGH_WATER and not self._protocol_paused:
            self._protocol_paused = True
            self._protocol.pause_writing()

    def _writable(self) -> None:
        try:
            self._send_kept()
        except _NOT_NOW:
            return
        except OSError as error:
            self._vanish(error)
            return
        if not self._buffer and self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
            if self._closing:
                self._say_goodbye()

    def _send_kept(self) -> None:
        """As much as leaves, and may leave in one turn. Raises OSError."""
        buffer = self._buffer
        for _ in range(_SENDS_A_TURN):
            if not buffer:
                return
            sent = self._sock.send(buffer[0])
            self._buffered -= sent
            if sent < len(buffer[0]):
                buffer[0] = memoryview(buffer[0])[sent:]
                return
            buffer.popleft()
            if not buffer:
                self._encrypt()
            if self._protocol_paused and self._buffered <= _LOW_WATER:
                self._protocol_paused = False
                self._protocol.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self._buffered

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return _LOW_WATER, _HIGH_WATER

    # The end

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._stop_reading()
        self._timer = self._loop.call_later(_FLUSH_SECONDS, self._vanish, None)
        if not self._buffered:
            self._say_goodbye()

    def abort(self) -> None:
        self._vanish(None)

    def _say_goodbye(self) -> None:
        # What may be complained of is the client's side of it, which is not waited for, or that it has gone.
        with suppress(OSError):
            self._tls.shutdown()
        self._session.answer()
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        if self._input_ended:
            self._vanish(None)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(_FAREWELL_SECONDS, self._vanish, None)
        self._reading = True
        self._listen(self._discard)

    def _discard(self) -> None:
        try:
            if self._sock.recv(_READ):
                return
        except _NOT_NOW:
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
            self._timer = None
        self._stop_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._buffer.clear()
        self._plain.clear()
        self._buffered = 0
        self._loop.call_soon(self._tell_lost, error)

    def _tell_lost(self, error: Exception | None) -> None:
        # Transport and protocol let go of each other: nothing of a connection waits for the garbage collector.
        protocol, self._protocol = self._protocol, _NOBODY
        try:
            protocol.connection_lost(error)
        finally:
            self._sock.close()
