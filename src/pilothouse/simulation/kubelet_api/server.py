"""The kubelet's HTTPS server: which path does what."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, Final

from pilothouse.endpoints.query import Query
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.header_lists import list_tokens
from pilothouse.net.listener import Listener, bind
from pilothouse.net.messages import BodyWriter, Request, Response
from pilothouse.net.server import HttpServer
from pilothouse.net.spdy import SpdySession
from pilothouse.net.websocket import Handshake, read_handshake
from pilothouse.net.websocket_messages import MessageSocket
from pilothouse.simulation.kubelet_api.commands import Command, Process
from pilothouse.simulation.kubelet_api.logs import Log
from pilothouse.simulation.kubelet_api.streams import (
    Connect,
    SocketCommand,
    SpdyCommand,
    SpdyForwarding,
    connect_locally,
    serve_tunnel,
)

_TEXT: Final = b"text/plain"
_FLAGS: Final = {"stdin": "input", "stdout": "output", "stderr": "error"}
_COMMAND_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io")
_SPDY_PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
_FORWARDING: Final = "portforward.k8s.io"
_TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"


LogOf = Callable[[str, str, str], Log | None]
"""The log of a container by namespace, pod and its own name; None where there is none."""


class KubeletServer:
    """Serves on loopback, under a port of its own, from ``start`` to ``close``."""

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        log_of: LogOf,
        command: Command,
        *,
        connect: Connect = connect_locally,
        folder: str = "",
        note: Callable[[Request], None] = lambda request: None,
    ) -> None:
        self._context, self._log_of, self._command, self._connect = context, log_of, command, connect
        self._folder, self._note = folder, note
        self._streams = Supervisor("kubelet streams")
        self._listener: Listener | None = None
        self._http = HttpServer(self._handle)

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._listener is not None, "the kubelet is not started"
        return int(self._listener.address[1])

    def start(self) -> None:
        """Begin to listen. Starting twice does nothing."""
        if self._listener is None:
            context = self._context()
            self._listener = Listener(self._http, bind("127.0.0.1", 0), lambda: context)
            self._listener.start()

    async def close(self) -> None:
        """End all streams."""
        if self._listener is None:
            return
        self._listener.stop()
        await self._listener.wait_stopped()
        await self._http.close()
        await self._streams.close(at_once=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._streams.spawn("a stream of a kubelet", work)

    async def _handle(self, request: Request) -> Response:
        query = Query(request.query)
        self._note(request)
        what, _, rest = request.path.lstrip("/").partition("/")
        parts = rest.split("/")
        if what == "containerLogs" and len(parts) == 3:
            return self._send_log(self._log_of(*parts), parts, query)
        if what in ("exec", "attach") and len(parts) == 3:
            return self._run_command(request, query, (parts[0], parts[1], parts[2]))
        if what == "portForward" and len(parts) == 2:
            return self._forward(request)
        if what in ("healthz", "metrics"):
            return Response(200, b"ok", _TEXT)
        return Response(404, b"404 page not found\n", _TEXT)

    def _send_log(self, log: Log | None, where: list[str], query: Query) -> Response:
        if log is None:
            text = f'container "{where[2]}" in pod "{where[1]}" is waiting to start: ContainerCreating'
            return Response(400, text.encode(), _TEXT)

        async def stream(writer: BodyWriter) -> None:
            async for line in log.read(query):
                writer.write(line)
                await writer.drain()

        return Response(200, b"", _TEXT, stream=stream)

    def _run_command(self, request: Request, query: Query, where: tuple[str, str, str]) -> Response:
        wanted = {name for name, flag in _FLAGS.items() if query.text(flag) == "1"}
        tty = query.text("tty") == "1"
        process = Process(query.all("command"), tty=tty, folder=self._folder, container=where)
        if request.asks_for_websocket:
            protocol = _choose(_asked(request, b"sec-websocket-protocol"), _COMMAND_PROTOCOLS)
            if not protocol:
                return Response(403, b"unsupported protocol", _TEXT)
            serving = SocketCommand(process, wanted, protocol, self._command)
            return self._accept_socket(request, protocol, serving.serve)
        protocol = _choose(_asked(request, b"x-stream-protocol-version"), _SPDY_PROTOCOLS)
        if not protocol:
            return Response(403, b"unable to upgrade: unable to negotiate protocol", _TEXT)
        if tty:
            wanted = (wanted - {"stderr"}) | {"resize"}
        command = SpdyCommand(process, wanted, protocol, self._command, self._spawn)
        return self._accept_spdy(protocol, command.on_stream)

    def _forward(self, request: Request) -> Response:
        forwarding = SpdyForwarding(self._spawn, self._connect)
        if request.asks_for_websocket:
            if _TUNNEL not in _asked(request, b"sec-websocket-protocol"):
                return Response(403, b"unsupported protocol", _TEXT)
            return self._accept_socket(request, _TUNNEL, lambda socket: serve_tunnel(socket, forwarding.on_stream))
        return self._accept_spdy(_FORWARDING, forwarding.on_stream)

    def _accept_spdy(self, protocol: str, on_stream: Any) -> Response:
        headers = [
            (b"Connection", b"Upgrade"),
            (b"Upgrade", b"SPDY/3.1"),
            (b"X-Stream-Protocol-Version", protocol.encode()),
        ]

        def upgrade(_: asyncio.Transport, leftover: bytes) -> SpdySession:
            return SpdySession(is_server=True, leftover=leftover, on_stream=on_stream)

        return Response(101, b"", b"", headers, upgrade=upgrade)

    def _accept_socket(self, request: Request, protocol: str, serve: Any) -> Response:
        accept = read_handshake(request).accept

        def upgrade(_: asyncio.Transport, leftover: bytes) -> MessageSocket:
            return MessageSocket(leftover, serve, lambda: None)

        return Response(101, b"", b"", Handshake(accept, (protocol.encode(),)).headers(), upgrade=upgrade)


def _asked(request: Request, name: bytes) -> list[str]:
    return [word.decode("latin-1") for word in list_tokens(request.header_values(name))]


def _choose(asked: list[str], known: tuple[str, ...]) -> str:
    return next((name for name in asked if name in known), "")
