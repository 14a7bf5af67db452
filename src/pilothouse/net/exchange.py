"""One request and its answer, apart from what carries them.

    carrier reads a head -> Exchange.start -> handler -> Response -> Carrier.send_whole | send_parts | open_writer
                                                                     | switch_protocol

A carrier is one HTTP/1.1 connection (one exchange after the other) or one HTTP/2 stream (one exchange); handlers and
filters see requests and responses and cannot tell which. What both have in common is here: the handler is stepped
without a task until it waits (eager.py), its failures become answers, streams are run, deadlines cancel.

Guarantees: a carrier is asked for at most one answer; nothing is asked of it after `lose`; the handler and the stream
of an exchange that is lost are cancelled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from pilothouse.net import eager
from pilothouse.net.eager import Suspended
from pilothouse.net.messages import Request, Response, UnsafeHeader
from pilothouse.net.request_body import ClientDisconnected, MalformedBody, RequestBody, Trailers
from pilothouse.net.writing import BodyWriter

if TYPE_CHECKING:
    from pilothouse.net.server import HttpServer

logger = logging.getLogger(__name__)

_TEXT = b"text/plain; charset=utf-8"


class Carrier(Protocol):
    """What an exchange needs of the connection or stream below it."""

    def send_whole(self, request: Request, response: Response) -> None:
        """Send head and body; the exchange is then complete."""

    def send_parts(self, request: Request, response: Response, done: Callable[[Exception | None], None]) -> None:
        """Send the head and then the parts at the pace of the client; `done` once."""

    def open_writer(self, request: Request, response: Response) -> BodyWriter | None:
        """Send the head and say where to write the body; None where the client wants none."""

    def switch_protocol(self, request: Request, response: Response) -> None:
        """Send a 101 and hand the connection over."""

    def close_after_answer(self) -> None:
        """Take no further requests from this client's connection once this answer is sent."""

    def finish(self, trailers: Trailers = ()) -> None:
        """The answer is complete, but for what comes after its body."""

    def break_off(self) -> None:
        """The answer never will be complete, and the client must be able to tell."""

    def abort(self) -> None:
        """Nothing more can or need be said to this client."""


class Exchange:
    """What happens to one request. `over` once it is answered, broken off, or its client has gone."""

    __slots__ = ("_body", "_carrier", "_server", "_suspended", "_writer", "over", "request")

    def __init__(self, server: "HttpServer", carrier: Carrier, request: Request, body: RequestBody | None) -> None:
        self._server = server
        self._carrier = carrier
        self._body = body
        self._suspended: Suspended[Response] | Suspended[None] | None = None
        self._writer: BodyWriter | None = None
        self.request = request
        self.over = False

    # For the carrier

    def start(self) -> None:
        """Call the handler."""
        server = self._server
        suspended = eager.start(server.handler(self.request), server.loop, self.answer, self._handler_failed)
        if suspended is not None:
            self._suspended = suspended
            server.suspended(suspended, self, self.request.deadline)

    @property
    def waiting(self) -> bool:
        """The handler, or the stream of its answer, has yet to end."""
        return self._suspended is not None

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call back once what still waits has ended."""
        if self._suspended is not None:
            self._suspended.when_over(lambda _: callback())

    def end(self) -> None:
        """The answer is complete."""
        self.over = True
        self.request.note_answered()
        if self._body is not None:
            self._body.release()

    def lose(self) -> None:
        """The client has gone."""
        if self.over:
            return
        self.over = True
        if self._body is not None:
            self._body.fail(ClientDisconnected("client disconnected"))
            self._body.release()
        if self._writer is not None:
            self._writer.close()
        self.request.note_disconnect()
        if self._suspended is not None:
            self._server.cancel_soon(self._suspended)

    # For the server

    def deadline(self, suspended: Suspended[Any]) -> float | None:
        """The deadline of the request, if `suspended` works on it; None if there is none or it has passed."""
        request = self.request
        return None if self.over or self._suspended is not suspended or request.timed_out else request.deadline

    def time_out(self, suspended: Suspended[Any]) -> None:
        """The deadline has passed: tell the handler by cancelling it."""
        self.request.timed_out = True
        suspended.cancel()

    # Answering

    def answer(self, response: Response) -> None:
        """Answer the request."""
        self._suspended = None
        if self.over:  # the client has gone
            return
        carrier, request = self._carrier, self.request
        if self._body is not None and self._body.complete and response.stream is None and response.upgrade is None:
            self._body.forget()
        try:
            if response.close:
                carrier.close_after_answer()
            if response.stream is not None:
                self._answer_stream(response)
            elif response.parts is not None:
                carrier.send_parts(request, response, self._parts_sent)
            elif response.upgrade is not None:
                self.over = True
                carrier.switch_protocol(request, response)
            else:
                carrier.send_whole(request, response)
        except UnsafeHeader as error:
            logger.error("%s: %s %r", error, request.method, request.path)
            carrier.close_after_answer()
            carrier.send_whole(request, Response(500, b"Internal Server Error\n", _TEXT))
        except Exception:
            logger.exception("answer not sent: %s %r", request.method, request.path)
            carrier.abort()

    def _handler_failed(self, error: BaseException) -> None:
        self._suspended = None
        if self.over:
            return
        request, carrier = self.request, self._carrier
        carrier.close_after_answer()
        if request.timed_out and isinstance(error, asyncio.CancelledError):
            self.answer(Response(504, b"Gateway Timeout\n", _TEXT))
        elif isinstance(error, MalformedBody):
            self.answer(Response(400, b"400 Bad Request", _TEXT))
        elif isinstance(error, asyncio.CancelledError | ClientDisconnected):
            carrier.abort()
        else:
            logger.error("handler failed: %s %r", request.method, request.path, exc_info=error)
            self.answer(Response(500, b"Internal Server Error\n", _TEXT))

    def _parts_sent(self, error: Exception | None) -> None:
        if self.over:
            return
        if error is None:
            self._carrier.finish()
            return
        if not isinstance(error, ClientDisconnected):
            logger.error("answer broken off: %s %r", self.request.method, self.request.path, exc_info=error)
        self._carrier.abort()

    def _answer_stream(self, response: Response) -> None:
        writer = self._writer = self._carrier.open_writer(self.request, response)
        if writer is None or response.stream is None:
            return
        server = self._server
        suspended = eager.start(_run(response.stream(writer)), server.loop, self._stream_ended, self._stream_failed)
        if suspended is not None:
            self._suspended = suspended
            server.suspended(suspended, self, self.request.deadline)

    def _stream_ended(self, _: None) -> None:
        self._suspended = None
        writer, self._writer = self._writer, None
        if writer is not None and not self.over:
            writer.finish()
            self._carrier.finish(writer.trailers)

    def _stream_failed(self, error: BaseException) -> None:
        self._suspended = None
        writer, self._writer = self._writer, None
        if writer is None or self.over:
            return
        if isinstance(error, ClientDisconnected):  # as good as gone, the handler says
            self._carrier.abort()
            return
        if not isinstance(error, asyncio.CancelledError):
            logger.error("stream failed: %s %r", self.request.method, self.request.path, exc_info=error)
        writer.flush()
        writer.close()
        self._carrier.break_off()


async def _run(awaitable: Awaitable[None]) -> None:
    await awaitable
