"""Exec and attach for clients that speak WebSocket and kubelets that speak SPDY.

    client  ⇄  WebSocket v5.channel.k8s.io: the first byte of a message is its channel
                 0 stdin  1 stdout  2 stderr  3 error (a Status, last)  4 resize     255 n: channel n is at its end
    kubelet ⇄  SPDY/3.1: one stream each, made with the header streamType

The client gets its 101 before the kubelet is asked; what goes wrong from there on is told on the error channel, as the
exit code of a command is. When the error stream has ended and both outputs are copied, the Status is sent and the
WebSocket closed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.subresources.links import Links
from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.net.client import Outbound
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import BodyTooLarge, ClientDisconnected, Response
from pilothouse.net.pacing import Pace, pace_of
from pilothouse.net.reverse_proxy import Destination
from pilothouse.net.spdy import SpdySession, SpdyStream, StreamReset
from pilothouse.net.websocket import BadHandshake, Handshake, read_handshake
from pilothouse.net.websocket_messages import MessageSocket, Piece

PROTOCOL: Final = b"v5.channel.k8s.io"
_SPDY_PROTOCOLS: Final = (
    b"v5.channel.k8s.io",
    b"v4.channel.k8s.io",
    b"v3.channel.k8s.io",
    b"v2.channel.k8s.io",
    b"channel.k8s.io",
)
_WITH_STATUS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_WITH_RESIZE: Final = (*_WITH_STATUS, "v3.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_CHANNELS: Final = 5
_MAX_STATUS: Final = 1 << 20
_REFUSAL_SECONDS: Final = 10.0
_EXIT_CODE: Final = re.compile(r"[0-9]{1,3}").fullmatch
_PING_SECONDS: Final = 5.0
_WRITES_A_TURN: Final = 16
_IDLE_SECONDS: Final = 4 * 3600.0
_EXIT: Final = "NonZeroExitCode"


@dataclass(frozen=True, slots=True)
class Streams:
    """What the client wants of a container."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False


class CommandFailed(Exception):
    """Why there is no success, as a Status."""

    def __init__(self, status: dict[str, Any]) -> None:
        super().__init__(status.get("message", ""))
        self.status = status


def translate_streams(links: Links, request: APIRequest, destination: Destination, streams: Streams) -> Response:
    """Accept the WebSocket; the kubelet is asked then."""
    try:
        handshake = read_handshake(request)
    except BadHandshake as bad:
        links.metrics.count_translated(400)
        return Response(bad.status, bad.text.encode(), b"", list(bad.headers), close=True)
    headers = Handshake(handshake.accept, (PROTOCOL,)).headers()
    translator = _Translator(links, destination, streams)

    def upgrade(_: asyncio.Transport, leftover: bytes) -> MessageSocket:
        return MessageSocket(leftover, translator.serve, lambda: None)

    return Response(101, b"", b"", headers, upgrade=upgrade)


class _Translator:
    def __init__(self, links: Links, destination: Destination, streams: Streams) -> None:
        self._client = links.client
        self._metrics = links.metrics
        self._destination = destination
        self._streams = streams
        self._rate = links.max_bytes_per_second

    async def serve(self, socket: MessageSocket) -> None:
        """Everything between the two handshakes and the Status."""
        wanted = self._streams
        lowest = STDOUT if wanted.stdout else STDERR if wanted.stderr else ERROR
        await socket.send(bytes((lowest,)))
        status: dict[str, Any] = {"metadata": {}, "status": "Success"}
        try:
            await self._run(socket)
        except CommandFailed as failed:
            status = failed.status
        except (OutgoingError, StreamReset, TimeoutError) as error:
            status = _internal(str(error) or "Timeout occurred")
        self._metrics.count_translated(_code_of(status))
        await socket.send(bytes((ERROR,)), orjson.dumps(status))

    async def _run(self, socket: MessageSocket) -> None:
        session, protocol = await self._connect()
        try:
            async with asyncio.TaskGroup() as group:
                pinging = group.create_task(_ping(session))
                work = group.create_task(self._stream(socket, session, protocol))
                work.add_done_callback(lambda _: pinging.cancel())
        except* (CommandFailed, StreamReset, ClientDisconnected, TimeoutError) as group_error:
            raise _first_of(group_error) from None
        finally:
            session.close()

    async def _connect(self) -> tuple[SpdySession, str]:
        destination = self._destination
        headers = [
            (b"Host", destination.target.authority.encode()),
            (b"User-Agent", b"kube-apiserver"),
            (b"Connection", b"Upgrade"),
            (b"Upgrade", b"SPDY/3.1"),
            *((b"X-Stream-Protocol-Version", name) for name in _SPDY_PROTOCOLS),
        ]
        url = f"https://{destination.target.authority}{destination.request_target.decode()}"
        try:
            reply = await self._client.send_alone(
                destination.target, Outbound("POST", destination.request_target, headers)
            )
        except OutgoingError as error:
            raise OutgoingError(f"error sending request: Post {quote(url)}: {error}") from None
        head = reply.head
        if 300 <= head.status <= 399:
            await reply.abort()
            raise OutgoingError(f"error sending request: Post {quote(url)}: redirect not allowed")
        is_spdy = b"upgrade" in head.get(b"connection").lower() and b"spdy/3.1" in head.get(b"upgrade").lower()
        if head.status != 101 or not is_spdy:
            try:
                async with asyncio.timeout(_REFUSAL_SECONDS):
                    body = await reply.read(_MAX_STATUS)
            except BodyTooLarge as error:
                raise OutgoingError(f"unable to upgrade connection: {error}") from None
            finally:
                await reply.abort()
            raise _not_upgraded(body)
        session = SpdySession(is_server=False)
        _, leftover = reply.take_over(session)
        if leftover:
            session.data_received(leftover)
        return session, head.get(b"x-stream-protocol-version").decode("latin-1")

    async def _stream(self, socket: MessageSocket, session: SpdySession, protocol: str) -> None:
        wanted = self._streams
        error = await session.open({"streamType": "error"})
        stdin = await session.open({"streamType": "stdin"}) if wanted.stdin else None
        stdout = await session.open({"streamType": "stdout"}) if wanted.stdout else None
        stderr = await session.open({"streamType": "stderr"}) if wanted.stderr and not wanted.tty else None
        resizes = wanted.tty and protocol in _WITH_RESIZE
        resize = await session.open({"streamType": "resize"}) if resizes else None
        error.close()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(_copy_input(socket, stdin, resize, pace_of(self._rate)))
            if stdin is not None:
                group.create_task(_await_end(stdin))
            outputs = [
                group.create_task(_copy_output(stream, channel, socket, pace_of(self._rate)))
                for stream, channel in ((stdout, STDOUT), (stderr, STDERR))
                if stream is not None
            ]
            message = await error.read_all(_MAX_STATUS)
            for output in outputs:
                await output
            reading.cancel()
            if stdin is not None:
                stdin.reset()
        if message:
            _judge(message, protocol)


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first, in whichever group of tasks."""
    error = group.exceptions[0]
    return _first_of(error) if isinstance(error, BaseExceptionGroup) else error


async def _ping(session: SpdySession) -> None:
    """Keep balancers between here and the kubelet from taking the connection for dead."""
    while True:
        await asyncio.sleep(_PING_SECONDS)
        session.ping()


async def _copy_output(stream: SpdyStream, channel: int, socket: MessageSocket, pace: Pace | None) -> None:
    prefix = bytes((channel,))
    with suppress(StreamReset):
        while pieces := await stream.read_available():
            if pace is None:
                await socket.send(prefix, *pieces)
            else:
                async for part in pace.spread(b"".join(pieces)):
                    await socket.send(prefix, part)


async def _await_end(stdin: SpdyStream) -> None:
    """A kubelet that closes its side of stdin wants no more of it."""
    with suppress(StreamReset):
        while await stdin.read():
            pass
    stdin.close()


async def _copy_input(
    socket: MessageSocket, stdin: SpdyStream | None, resize: SpdyStream | None, pace: Pace | None
) -> None:
    """What the client sends, to the stream of its channel, until it goes. Input is held to the pace, sizes are not."""
    sinks, channels = {STDIN: stdin, RESIZE: resize}, _Channels()
    while True:
        async with asyncio.timeout(_IDLE_SECONDS):
            pieces = await socket.receive_available()
        if not pieces:
            raise ClientDisconnected("client disconnected")
        for number, (channel, data) in enumerate(channels.sort(pieces)):
            sink = sinks.get(channel)
            if number % _WRITES_A_TURN == _WRITES_A_TURN - 1:
                await asyncio.sleep(0)
            if sink is None:
                continue
            if data is None:
                sink.close()
            elif pace is None or channel != STDIN:
                sink.write(data)
                await sink.drain()
            else:
                async for part in pace.spread(data):
                    sink.write(part)
                    await sink.drain()


class _Channels:
    """Knows to which channel a piece of a message belongs."""

    def __init__(self) -> None:
        self._channel = ERROR

    def sort(self, pieces: list[Piece]) -> Iterator[tuple[int, bytes | None]]:
        """What there is for each channel, in order; None closes it. Raises ClientDisconnected.

        Messages may be as short as a byte: input, which has no borders, is handed on at once.
        """
        gathered: list[bytes] = []
        for piece in pieces:
            data = piece.data
            if piece.first:
                channel, data = data[0], data[1:]
                if gathered and not channel == self._channel == STDIN:
                    yield self._channel, b"".join(gathered)
                    gathered = []
                self._channel = channel
                if channel == CLOSE:
                    if len(data) != 1 or data[0] >= _CHANNELS:
                        raise ClientDisconnected("protocol error")
                    self._channel, data = data[0], b""
                    yield self._channel, None
            gathered.append(data)
        if gathered:
            yield self._channel, b"".join(gathered)


def _judge(message: bytes, protocol: str) -> None:
    """What the kubelet said in the end. Raises CommandFailed unless that is success."""
    if protocol not in _WITH_STATUS:
        raise CommandFailed(_internal(f"error executing remote command: {message.decode('utf-8', 'replace')}"))
    try:
        status = orjson.loads(message)
        word = status["status"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        shown = quote(message.decode("utf-8", "replace"))
        raise CommandFailed(_internal(f"error stream protocol error: unknown error in {shown}")) from None
    if word == "Success":
        return
    if word != "Failure":
        raise CommandFailed(_internal("error stream protocol error: unknown error"))
    if status.get("reason") != _EXIT:
        raise CommandFailed(_internal(str(status.get("message", ""))))
    code = _exit_code(status)
    if code is None:
        raise CommandFailed(_internal("error stream protocol error: no ExitCode cause given"))
    if not _EXIT_CODE(code) or int(code) > 255:
        raise CommandFailed(_internal(f"error stream protocol error: invalid exit code value {quote(code)}"))
    words = f"command terminated with non-zero exit code: command terminated with exit code {code}"
    details = {"causes": [{"reason": "ExitCode", "message": code}]}
    raise CommandFailed({"metadata": {}, "status": "Failure", "message": words, "reason": _EXIT, "details": details})


def _exit_code(status: dict[str, Any]) -> str | None:
    """What a Status gives as exit code, whatever else it is made of."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == "ExitCode":
            return str(cause.get("message", ""))
    return None


def _code_of(status: dict[str, Any]) -> int:
    """What is counted: codes that a kubelet makes up are all one."""
    code = 200 if status.get("reason") == _EXIT else status.get("code", 200)
    return code if isinstance(code, int) and 100 <= code < 600 else 500


def _internal(why: str) -> dict[str, Any]:
    status = errors.internal_error(why).status
    return {key: value for key, value in status.items() if key not in ("kind", "apiVersion")}


def _not_upgraded(body: bytes) -> Exception:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return CommandFailed({key: value for key, value in status.items() if key not in ("kind", "apiVersion")})
    return OutgoingError(f"unable to upgrade connection: {body.decode('utf-8', 'replace')}")
