"""The sockets of a process: where it listens, the TLS it speaks there, and the connections it has."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery.metrics import CollectedGauge, Instrument
from pilothouse.net.listener import Acceptor, Listener
from pilothouse.net.server import HttpServer
from pilothouse.net.tls import ServerTls
from pilothouse.options.secure_serving import SecureServingOptions


class Serving:
    """Accepts connections and has their requests handled. To be made on the event loop."""

    def __init__(
        self,
        handler: Handler,
        flags: SecureServingOptions,
        client_authorities: Callable[[], tuple[str, ...]],
        goaway_chance: float,
        open_socket: Callable[[Serving], Acceptor],
        on_closed: Callable[[], None],
    ) -> None:
        """``open_socket`` gives what connections come from, when they are to come. It may raise OSError.

        ``on_closed`` is told whenever a connection has gone.
        """
        http2 = flags.http2_options(goaway_chance)
        self.http = HttpServer(handler, request_type=APIRequest, http2=http2, on_closed=on_closed)
        self._flags, self._client_authorities, self._open_socket = flags, client_authorities, open_socket
        self._tls: ServerTls | None = None
        self._listener: Listener | None = None

    @property
    def load(self) -> int:
        """Connections there are, and those being made."""
        return self.http.load + (0 if self._listener is None else self._listener.newcomers)

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return [
            CollectedGauge(
                "apiserver_tls_handshake_errors_total",
                "[ALPHA] TLS handshakes that failed.",
                (),
                lambda: [((), 0 if self._listener is None else self._listener.handshake_errors)],
                "counter",
            )
        ]

    def start(self) -> None:
        """Read the certificates and listen; who connects waits until ``accept``. Raises OSError."""
        self._tls = ServerTls(self._flags.tls_files(self._client_authorities()))
        self._listener = Listener(self.http, self._open_socket(self), self._tls.context)

    def accept(self) -> None:
        """Begin to accept connections."""
        assert self._listener is not None
        self._listener.start()

    def admit(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted before."""
        assert self._listener is not None
        self._listener.admit(connection)

    async def poll_files(self) -> None:
        """Look whether certificates changed."""
        if self._tls is not None:
            await asyncio.to_thread(self._tls.reload_if_changed)

    def stop_accepting(self) -> None:
        """Take no more connections; those there are live on."""
        if self._listener is not None:
            self._listener.stop()

    async def drain(self, seconds: float) -> None:
        """End each connection after the request it is at, and wait for that, but not longer."""
        self.http.begin_drain()
        await self.http.wait_idle(seconds)

    async def close(self) -> None:
        """End all connections at once."""
        if self._listener is not None:
            self._listener.stop()
            await self._listener.wait_stopped()
        await self.http.close()
