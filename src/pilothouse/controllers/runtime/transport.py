"""One call of the server to itself: a request is put together, handed to the outermost filter, and its answer read.

No socket and no HTTP, but nothing else is left out: flow control, audit, authorization and admission see the request
with the user that its connection vouches for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self
from urllib.parse import unquote, urlencode

from pilothouse.authn.loopback import LoopbackConnection
from pilothouse.controllers.runtime.metrics import count_selfrequest
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import Response
from pilothouse.net.request_body import RequestBody
from pilothouse.net.request_head import HeaderBlock, RequestLine
from pilothouse.net.writing import BodyWriter, WriteGate

_SECONDS: Final = 90.0
"""More than the server allots to a request, so that its own answer comes first."""
_FULL: Final = 1000
_LARGEST: Final = 256 * 1024 * 1024
_HOST: Final = b"localhost"


class _NoSource:
    """A body that is complete already has no source to ask for more."""

    def continue_reading(self) -> None:
        """Never called."""


def make_request(
    connection: LoopbackConnection,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: dict[bytes, bytes],
    body: bytes | None,
) -> APIRequest:
    """A request as if it had come over a connection."""
    asked = urlencode(query)
    target = f"{path}?{asked}" if asked else path
    line = RequestLine(method, target.encode(), path, unquote(path), asked, 1, _HOST)
    sent: RequestBody | None = None
    if body is not None:
        sent = RequestBody(_NoSource(), len(body))
        sent.feed(body, True)
    return APIRequest(connection, line, HeaderBlock({b"host": _HOST, **headers}, {}), True, sent)


async def call(handler: Handler, request: APIRequest) -> Object:
    """The object that is answered. Raises the ``StatusError`` of a refusal."""
    response = await _answer(handler, request)
    if response.stream is not None:
        return await _read(response, await _collect(response.stream))
    body = response.body if response.parts is None else b"".join(response.parts)
    return await _read(response, body)


async def _collect(stream: Callable[[BodyWriter], Awaitable[None]]) -> bytes:
    """All of a body that comes bit by bit: what an aggregated server answers is passed on as it arrives."""
    pieces = _Pieces()
    writer = BodyWriter(pieces.gate, asyncio.get_running_loop(), b"", False)
    try:
        async with asyncio.timeout(_SECONDS):
            await stream(writer)
    except TimeoutError:
        raise errors.timeout("request did not complete within the allotted timeout", 0) from None
    finally:
        writer.finish()
    return bytes(pieces.data)


async def _answer(handler: Handler, request: APIRequest) -> Response:
    try:
        async with asyncio.timeout(_SECONDS):
            response = await handler(request)
            count_selfrequest(request)
            return response
    except TimeoutError:
        raise errors.timeout("request did not complete within the allotted timeout", 0) from None


async def _read(response: Response, body: bytes) -> Object:
    try:
        obj: Any = await weighed(len(body), large_json.loads, body)
    except ValueError:
        text = body.decode(errors="replace").strip()
        reason = "NotFound" if response.status == 404 else ""
        raise errors.from_status({"code": response.status, "reason": reason, "message": text}) from None
    if response.status >= 400:
        raise errors.from_status(obj)
    found: Object = obj
    return found


class Watch:
    """The events of a watch: ``async with client.watch(...) as events: async for type, obj in events``.

    It ends when the server ends it, as every watch does after some time. What the server says in an ERROR event is
    raised as a ``StatusError``.
    """

    def __init__(self, handler: Handler, request: APIRequest) -> None:
        self._handler, self._request = handler, request
        self._lines = _Lines()
        self._streaming: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        response = await _answer(self._handler, self._request)
        if response.stream is None:
            await _read(response, response.body)
            raise errors.internal_error("a watch was answered with an object")
        writer = BodyWriter(self._lines.gate, asyncio.get_running_loop(), b"", False)
        self._streaming = asyncio.get_running_loop().create_task(self._stream(response, writer))
        self._streaming.add_done_callback(lambda ended: self._lines.close())
        return self

    async def _stream(self, response: Response, writer: BodyWriter) -> None:
        assert response.stream is not None
        try:
            await response.stream(writer)
        finally:
            writer.finish()

    async def __aexit__(self, *exception: object) -> None:
        self._request.note_disconnect()
        if self._streaming is not None:
            self._streaming.cancel()
            await asyncio.wait([self._streaming])

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, Object]:
        line = await self._lines.next()
        if line is None:
            assert self._streaming is not None
            if not self._streaming.cancelled() and (error := self._streaming.exception()) is not None:
                raise error
            raise StopAsyncIteration
        event = await weighed(len(line), large_json.loads, line)
        if event["type"] == "ERROR":
            raise errors.from_status(event["object"])
        return event["type"], event["object"]


class _Pieces(asyncio.Transport):
    """Where a stream is written to that is wanted as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = WriteGate(self)
        self.data = bytearray()

    def write(self, data: Any) -> None:
        """Take what was written, up to a limit: nobody's answer is worth all memory."""
        self.data += data
        if len(self.data) > _LARGEST:
            raise errors.internal_error("the answer is too large")

    def is_closing(self) -> bool:
        """Everything is taken."""
        return False

    def get_write_buffer_size(self) -> int:
        """Nothing waits here."""
        return 0


class _Lines(asyncio.Transport):
    """Where a stream is written to, and its lines are taken from; too many of them hold up the writing."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = WriteGate(self)
        self._rest = b""
        self._whole: deque[bytes] = deque()
        self._more = asyncio.Event()
        self._ended = False

    def write(self, data: Any) -> None:
        """Take what was written."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._whole.extend(lines)
        self._more.set()
        if len(self._whole) >= _FULL:
            self.gate.pause()

    def is_closing(self) -> bool:
        """Whether the stream has ended."""
        return self._ended

    def get_write_buffer_size(self) -> int:
        """Nothing waits here but whole lines."""
        return 0

    def close(self) -> None:
        """Nothing more will be written."""
        self._ended = True
        self._more.set()

    async def next(self) -> bytes | None:
        """The next line; None at the end."""
        while not self._whole:
            if self._ended:
                return None
            self._more.clear()
            await self._more.wait()
        line = self._whole.popleft()
        if self.gate.paused and len(self._whole) < _FULL // 2:
            self.gate.open()
        return line
