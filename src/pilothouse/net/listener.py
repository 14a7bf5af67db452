"""Accepting connections, with or without TLS.

The listener accepts by itself instead of leaving it to `loop.create_server`, because a client that speaks plain HTTP
to the TLS port has to be told so: the first bytes are looked at (not taken) before the TLS handshake begins.
A client that connects and says nothing costs one socket, for `handshake_timeout` at most; when there are too many of
them, or the process runs out of descriptors, the oldest go (`strangers.py`), and nobody is shut out. However many speak
at once, those who are connected are served in between (`greetings.py`). A handshake that has begun costs 45 kB, so
there are few of them, and of those that take long the oldest go; who has spoken meanwhile waits for room and loses
nothing to those who come later.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import socket
import ssl
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Protocol

from pilothouse.net.greetings import Greetings
from pilothouse.net.server import HttpServer
from pilothouse.net.strangers import Strangers, affordable, network_of
from pilothouse.net.tls_transport import Handshake, Session, TlsTransport

logger = logging.getLogger(__name__)

_PLAIN_ANSWER = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
_PLAIN_STARTS = (b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO")
_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_ACCEPTS_PER_TURN = 16
_EXPIRES_PER_TURN = 64
_SHED_WHEN_OUT_OF_FILES = 16
_REST_SECONDS = 0.05


class Acceptor(Protocol):
    """Where connections come from: a listening socket, or what behaves like one."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection and its address. Raises OSError, BlockingIOError when there is none."""

    def fileno(self) -> int:
        """Readable when there is a connection; negative once closed."""

    def getsockname(self) -> Any:
        """Where it listens."""

    def close(self) -> None:
        """Accept no more."""


def bind(host: str, port: int, *, reuse_port: bool = False, backlog: int = 4096) -> socket.socket:
    """A listening socket for an IPv4 or IPv6 address (`::` also takes IPv4, as in Go); port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        sock.bind((host, port))
        sock.listen(backlog)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


class _Silent:
    """A connection of which nothing was heard yet: `spoke` is told when there is something to be heard, `heard` gets
    its first bytes once, or none if there will be no more."""

    __slots__ = ("_greetings", "_heard", "_loop", "_over", "_spoke", "address", "sock")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        address: str,
        greetings: Greetings,
        spoke: Callable[[_Silent], None],
        heard: Callable[[_Silent, bytes], None],
    ) -> None:
        self._loop = loop
        self._greetings = greetings
        self._over = False
        self._spoke, self._heard = spoke, heard
        self.sock = sock
        self.address = address
        loop.add_reader(sock, self._readable)

    def abandon(self) -> None:
        """Listen no longer."""
        self._end(b"")

    def _readable(self) -> None:
        self._loop.remove_reader(self.sock)
        self._spoke(self)
        self._greetings.begin(self._listen, self.address)

    def _listen(self) -> None:
        if self._over:
            return
        try:
            first = self.sock.recv(5, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            self._loop.add_reader(self.sock, self._readable)
            return
        except OSError:
            first = b""
        self._end(first)

    def _end(self, first: bytes) -> None:
        self._over = True
        self._loop.remove_reader(self.sock)
        self._heard(self, first)


class Listener:
    """Feeds accepted connections of one listening socket to a server, which it does not own."""

    def __init__(
        self,
        server: HttpServer,
        sock: Acceptor,
        tls: Callable[[], ssl.SSLContext] | None = None,
        *,
        handshake_timeout: float = 10.0,
        max_silent: int = 8192,
        max_waiting: int = 8192,
        max_handshakes: int = 512,
        max_stalled: int = 256,
    ) -> None:
        """Of new connections, ``max_silent`` may say nothing and ``max_waiting`` wait for us before TLS begins."""
        self._server = server
        self._sock = sock
        self._tls = tls
        self._loop = server.loop
        self._handshake_timeout = handshake_timeout
        self._silent: Strangers[_Silent] = Strangers(affordable(max_silent))
        self._waiting: Strangers[_Silent] = Strangers(affordable(max_waiting))
        self._max_handshakes = affordable(max_handshakes)
        self._handshakes: set[Handshake] = set()
        self._stalled: Strangers[Handshake] = Strangers(affordable(max_stalled))
        self._greetings = Greetings(self._loop, lambda: len(self._handshakes) < self._max_handshakes)
        self._due: dict[_Silent, float] = {}
        """Until when those are borne with who have not begun, oldest first."""
        self._timer: asyncio.Handle | None = None
        self._connecting: set[asyncio.Task[None]] = set()
        self.handshake_errors = 0
        """How many clients did not come to speak TLS."""
        self._accepting = False
        self._complained = -math.inf

    @property
    def address(self) -> tuple[str, int]:
        """Host and port listened on."""
        host, port = self._sock.getsockname()[:2]
        return host, port

    @property
    def newcomers(self) -> int:
        """Connections that are being made."""
        greeting = len(self._silent) + len(self._waiting)
        return greeting + len(self._handshakes) + len(self._stalled) + len(self._connecting)

    def start(self) -> None:
        """Begin to accept."""
        self._accepting = True
        self._loop.add_reader(self._sock, self._accept)

    def stop(self) -> None:
        """Stop accepting and close the socket; connections already made live on."""
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._sock)
        for newcomer in [*self._silent, *self._waiting, *self._handshakes, *self._stalled]:
            newcomer.abandon()
        for task in self._connecting:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._sock.close()

    async def wait_stopped(self) -> None:
        """After `stop`: wait until no connection is being made."""
        if self._connecting:
            await asyncio.wait(self._connecting)

    def admit(self, sock: socket.socket) -> None:
        """Serve a connection that somebody else has accepted, unless its client has gone or we are stopping."""
        try:
            address = sock.getpeername()
        except OSError:
            sock.close()
            return
        if self._sock.fileno() < 0:
            sock.close()
        else:
            self._admit(sock, network_of(str(address[0])))

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _OUT_OF_FILES:
                    self._rest(error)
                else:
                    logger.error("accept failed: %s", error)
                return
            self._admit(sock, network_of(str(address[0])))

    def _rest(self, error: OSError) -> None:
        # The connection stays in the backlog; without a pause the loop would spin on it.
        now = self._loop.time()
        if now > self._complained + 1.0:
            self._complained = now
            logger.error("accept failed, dropping unknown clients: %s", error)
        for _ in range(_SHED_WHEN_OUT_OF_FILES):
            newcomer = self._silent.oldest() or self._stalled.oldest()
            if newcomer is not None:
                newcomer.abandon()
            self._server.shed_stranger()
        self._accepting = False
        self._loop.remove_reader(self._sock)
        self._loop.call_later(_REST_SECONDS, self._resume)

    def _resume(self) -> None:
        if self._sock.fileno() >= 0:
            self.start()

    def _admit(self, sock: socket.socket, address: str) -> None:
        sock.setblocking(False)
        _tune(sock)
        if self._tls is None:
            self._connect_plain(sock)
            return
        while (oldest := self._silent.surplus()) is not None:
            oldest.abandon()
        silent = _Silent(self._loop, sock, address, self._greetings, self._spoke, self._heard)
        self._silent.add(silent, address)
        self._due[silent] = self._loop.time() + self._handshake_timeout
        if self._timer is None:
            self._timer = self._loop.call_later(self._handshake_timeout, self._expire)

    def _expire(self) -> None:
        """Abandon those whose time is over, some in each turn: a crowd has come in one moment, and so goes."""
        now = self._loop.time()
        for silent, due in list(islice(self._due.items(), _EXPIRES_PER_TURN)):
            if due > now:
                self._timer = self._loop.call_at(due, self._expire)
                return
            silent.abandon()
        self._timer = self._loop.call_soon(self._expire) if self._due else None

    def _spoke(self, silent: _Silent) -> None:
        self._silent.discard(silent)
        self._waiting.discard(silent)  # it may speak again when what it said was nothing after all
        while (latest := self._waiting.latest_surplus()) is not None:
            latest.abandon()
        self._waiting.add(silent, silent.address)

    def _heard(self, silent: _Silent, first: bytes) -> None:
        self._due.pop(silent, None)
        self._silent.discard(silent)
        self._waiting.discard(silent)
        sock = silent.sock
        if not first or self._tls is None:
            sock.close()
        elif first.startswith(_PLAIN_STARTS):
            self._answer_plain(sock)
        else:
            stall, done = partial(self._stall, silent.address), self._shaken
            context, seconds = self._tls(), self._handshake_timeout
            handshake = Handshake(self._loop, sock, silent.address, context, seconds, self._greetings, stall, done)
            self._handshakes.add(handshake)
            handshake.begin()

    def _stall(self, address: str, handshake: Handshake) -> None:
        self._handshakes.discard(handshake)
        while (oldest := self._stalled.surplus()) is not None:
            oldest.abandon()
        self._stalled.add(handshake, address)
        self._greetings.resume()

    def _shaken(self, handshake: Handshake, session: Session | None) -> None:
        self._handshakes.discard(handshake)
        self._stalled.discard(handshake)
        self._greetings.resume()
        if session is None:
            self.handshake_errors += 1
        else:
            TlsTransport(self._loop, session, self._server.protocol(session.tls.selected_alpn_protocol()))

    def _answer_plain(self, sock: socket.socket) -> None:
        try:
            sock.recv(65536)  # a socket closed with unread input resets the connection and loses the answer
            sock.send(_PLAIN_ANSWER)
        except OSError:
            pass
        sock.close()

    def _connect_plain(self, sock: socket.socket) -> None:
        task = self._loop.create_task(self._hand_to_loop(sock))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _hand_to_loop(self, sock: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._server.protocol, sock)
        except OSError:
            sock.close()
        except asyncio.CancelledError:
            sock.close()
            raise


def _tune(sock: socket.socket) -> None:
    # Keep-alive probes as Go sends them: a watcher that vanished without a word is noticed within minutes.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in ("TCP_KEEPIDLE", "TCP_KEEPINTVL"):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), 15)
