"""One HTTP/1.x connection: bytes in, exchanges one after the other, answers out in order.

    data_received -> _input -> head -> body decoder -> Exchange -> answer -> next request in _input

One request at a time: bytes of later (pipelined) requests wait in `_input`, and beyond `_INPUT_HIGH` the socket is
not read.  Nor is a further request looked at while the client does not read the answers it has: whatever is sent, a
connection holds one answer's share of output and one share of input.  A turn of the loop serves a few pipelined
requests and leaves the rest to the next.

After an upgrade the connection stays here, but all that happens to it is told to `_upgraded`.

Input state:   `_decoder` is set while the body of the current request is arriving.
Request state: `_exchange` is set from the complete head until the answer is complete.
The next head is looked at only when both are None.  `_closing` ends the conversation: input is dropped from then on.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from pilothouse.net.exchange import Exchange
from pilothouse.net.held_input import FREE_BYTES
from pilothouse.net.http1 import response_head
from pilothouse.net.http1.body_decoder import ChunkedDecoder, Decoder, LengthDecoder
from pilothouse.net.http1.head_reader import HeadReader
from pilothouse.net.messages import Connection, Request, Response, Upgraded
from pilothouse.net.parking import SILENT_SECONDS
from pilothouse.net.request_body import MalformedBody, RequestBody, Trailers
from pilothouse.net.request_head import HeaderBlock, Refusal, RequestLine
from pilothouse.net.writing import BATCH, BodyWriter, PartsSender, WriteGate

if TYPE_CHECKING:
    from pilothouse.net.server import HttpServer

_INPUT_HIGH = 256 * 1024
_ONE_WRITE = 32 * 1024  # up to here, copying the body behind its head is cheaper than a second TLS record
_AT_ONCE = 256 * 1024  # up to here, a body is handed to the transport whole; larger ones go at the pace of the client
_AWAITED_BODY = 256 * 1024  # bodies up to here are awaited before the handler starts
_DISCARD_LIMIT = 256 * 1024  # how much of an unread body is skipped to keep the connection
_REQUESTS_A_TURN = 4
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


class Http1Connection(asyncio.Protocol):
    """The server's side of one connection."""

    __slots__ = (
        "_awaiting_body",
        "_body",
        "_closing",
        "_decoder",
        "_discarded",
        "_exchange",
        "_expects_continue",
        "_gate",
        "_holds_input",
        "_input",
        "_keep_alive",
        "_kept",
        "_partial",
        "_processing",
        "_reading_paused",
        "_since",
        "_turn_due",
        "_upgraded",
        "connection",
        "server",
        "transport",
    )

    transport: asyncio.Transport
    connection: Connection
    _gate: WriteGate

    def __init__(self, server: "HttpServer") -> None:
        self.server = server
        self._input = HeadReader(server.limits.header_bytes)
        self._partial = False  # part of a head has arrived
        self._holds_input = False  # so much that it counts
        self._decoder: Decoder | None = None
        self._body: RequestBody | None = None
        self._discarded = 0
        self._expects_continue = False
        self._awaiting_body = False
        self._exchange: Exchange | None = None
        self._kept: bytes | None = None  # an answer that leaves together with others
        self._keep_alive = True
        self._upgraded: asyncio.Protocol | None = None
        self._turn_due = False  # further requests are taken up in the next turn of the loop
        self._processing = False
        self._reading_paused = False
        self._closing = False
        self._since = server.now  # when the present state (idle, reading a head, refusing) began

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gate = WriteGate(self.transport)
        self.connection = Connection(self.transport, self.server.turns)
        self.server.admit(self)

    def data_received(self, data: bytes) -> None:
        self.server.polling.came()
        if self._closing:
            if self._upgraded is not None:
                self._upgraded.data_received(data)
            return
        if self._decoder is not None:
            self._receive_body(data)
        else:
            self._input.feed(data)
            if self._exchange is not None or self._turn_due or self._gate.paused:
                self._hold_input()
                if self._input.pending > _INPUT_HIGH:
                    self._pause_reading()
                return
        self._process()

    def eof_received(self) -> bool:
        if self._upgraded is not None:
            return bool(self._upgraded.eof_received())
        # As in Go, a client that half-closes while its handler waits is taken for gone; an answer on its way goes on.
        exchange = self._exchange
        sending = exchange is not None and not exchange.waiting and self._decoder is None
        self._keep_alive = False
        return sending and self.connection.scheme == "http"

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._input.take()
        self._hold_input()
        self._decoder = None
        self.server.forget(self)
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.lose()
        self._gate.close()
        if self._upgraded is not None:
            self._upgraded.connection_lost(exc)

    def pause_writing(self) -> None:
        self._gate.pause()
        if not self._awaiting_body:
            self._since = self.server.now
        if self._upgraded is not None:
            self._upgraded.pause_writing()

    def resume_writing(self) -> None:
        self._gate.open()
        if self._upgraded is not None:
            self._upgraded.resume_writing()
        elif self._exchange is None and not self._closing:
            self._resume_reading()
            self._process()

    # Input

    def _process(self) -> None:
        # Answers that complete at once bring us back here from within; the loop then simply goes on.
        if self._processing or self._turn_due:
            return
        self._processing = True
        reader, left = self._input, _REQUESTS_A_TURN
        try:
            while reader.data and self._exchange is None and self._decoder is None and not self._closing:
                if self._gate.paused:
                    break
                if not left:
                    self._turn_due = True
                    self.server.reading.defer(self)
                    break
                head = reader.next_head()
                if head is None:
                    self._note_partial_head()
                    break
                left -= 1
                self._partial = False
                self._begin(*head)
        except Refusal as refusal:
            self._refuse(refusal)
        finally:
            self._processing = False
            if self._holds_input or len(reader.data) > FREE_BYTES:
                self._hold_input()

    def _hold_input(self) -> None:
        """Have what is unread counted, if it is much, or has been."""
        held, size = self.server.held_input, self._input.pending
        if size > FREE_BYTES and not self._closing:
            self._holds_input = True
            held.hold(self, self.connection.peer[0], size)
        elif self._holds_input:
            self._holds_input = False
            held.release(self)

    def give_way(self) -> None:
        """See ``HeldInput``."""
        self._holds_input = False
        self._input.take()
        self.abort()

    def read_late(self) -> None:
        """Go on with requests that came faster than they are answered."""
        self._turn_due = False
        if self._exchange is None and not self._closing and not self._gate.paused:
            self._resume_reading()
            self._process()

    def _note_partial_head(self) -> None:
        if not self._partial:
            self._partial = True
            self._since = self.server.now

    def _begin(self, line: RequestLine, headers: HeaderBlock) -> None:
        server = self.server
        if self._kept is not None:
            self.send_kept()
        if headers.plain and line.minor:
            self._keep_alive = keep_alive = not headers.close
            request = server.request_type(self.connection, line, headers, keep_alive, None)
            exchange = self._exchange = Exchange(server, self, request, None)
            exchange.start()
        else:
            self._begin_special(line, headers)

    def _begin_special(self, line: RequestLine, headers: HeaderBlock) -> None:
        length = headers.content_length
        chunked = False
        modern = line.minor > 0
        if modern:
            if headers.transfer_encoding_error:
                raise Refusal("501 Not Implemented", "Unsupported transfer encoding")
            chunked = headers.chunked
            if headers.host_error is not None and line.method != "CONNECT":
                raise headers.host_error
        keep_alive = not headers.close if modern else headers.keep_alive and not headers.close
        if chunked and length is not None:
            keep_alive = False  # possibly smuggled: the coding wins, and nothing after it is believed
        body: RequestBody | None = None
        self._expects_continue = False
        if chunked or length:
            body = RequestBody(self, None if chunked else length, self.server.held_input, self.connection.peer[0])
            self._decoder = ChunkedDecoder() if chunked else LengthDecoder(length or 0)
            self._discarded = 0
            self._expects_continue = modern and headers.expect == b"100-continue"
        self._body = body
        self._keep_alive = keep_alive
        request = self.server.request_type(self.connection, line, headers, keep_alive, body)
        exchange = self._exchange = Exchange(self.server, self, request, body)
        if headers.expect and headers.expect != b"100-continue":
            self._keep_alive = False
            return exchange.answer(Response(417, b"", b""))
        if body is None:
            return exchange.start()
        return self._begin_body(exchange, body)

    def _begin_body(self, exchange: Exchange, body: RequestBody) -> None:
        if self._input.pending:
            self._receive_body(self._input.take(), starting=True)
        if self._exchange is not exchange:
            return
        late = not body.complete and body.length is not None and body.length <= _AWAITED_BODY
        if late and not self._expects_continue:
            self._awaiting_body = True
            self._since = self.server.now
        else:
            exchange.start()

    def _receive_body(self, data: bytes, starting: bool = False) -> None:
        decoder, body = cast(Decoder, self._decoder), self._body
        try:
            payload, rest = decoder.feed(data)
        except MalformedBody as error:
            self._body_broken(error)
            return
        if rest is not None:
            self._decoder = None
            self._input.feed(rest)
        if body is None:
            self._discarded += len(payload)
            if self._discarded > _DISCARD_LIMIT and rest is None:
                self._hang_up()
            return
        body.feed(payload, rest is not None, decoder.trailers)
        if self._awaiting_body and body.complete:
            self._awaiting_body = False
            cast(Exchange, self._exchange).start()
        elif body.congested and rest is None and not starting:
            self._pause_reading()

    def _body_broken(self, error: MalformedBody) -> None:
        self._decoder = None
        self._keep_alive = False
        self._closing = True
        if self._body is not None:
            self._body.fail(error)
        if self._exchange is None:
            self._hang_up()

    def continue_reading(self) -> None:
        """The handler waits for its body."""
        if self._expects_continue:
            self._expects_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._resume_reading()

    def _pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    # Answering

    def close_after_answer(self) -> None:
        self._keep_alive = False

    def _head(self, request: Request, response: Response, framing: bytes) -> bytes:
        return b"".join(
            (
                response_head.prefix(request.http_minor, response.status, response.content_type)[0],
                response_head.extra_lines(response.headers),
                response_head.DATE.current(),
                framing,
                self._last_lines(request),
            )
        )

    def _last_lines(self, request: Request) -> bytes:
        if self._decoder is not None or self.server.draining:
            self._give_up_keep_alive()
        if self._keep_alive:
            return b"\r\n" if request.http_minor else b"Connection: keep-alive\r\n\r\n"
        # Older clients do not expect anything else.
        return b"Connection: close\r\n\r\n" if request.http_minor else b"\r\n"

    def _give_up_keep_alive(self) -> None:
        decoder = self._decoder
        long_rest = isinstance(decoder, LengthDecoder) and decoder.remaining > _DISCARD_LIMIT
        if self.server.draining or self._expects_continue or long_rest:
            self._keep_alive = False

    def send_whole(self, request: Request, response: Response) -> None:
        body = response.body
        prefix, may_have_body = response_head.prefix(request.http_minor, response.status, response.content_type)
        if may_have_body:
            extra = response_head.extra_lines(response.headers)
            goes_on = self._keep_alive and self._decoder is None and request.http_minor and not self.server.draining
            head = b"%b%b%bContent-Length: %d\r\n%b" % (
                prefix,
                extra,
                response_head.DATE.current(),
                len(body),
                b"\r\n" if goes_on else self._last_lines(request),
            )
            if request.method == "HEAD":
                body = b""
        else:
            head, body = self._head(request, response, b""), b""
        if len(body) <= _ONE_WRITE:
            if self._keep_alive and self.server.answers.keeps(self):
                self._kept = head + body
            else:
                self.transport.write(head + body)
        elif len(body) <= _AT_ONCE:
            self.transport.writelines([head, body])
        else:
            PartsSender(self._gate, self.server.body_turns, head, _slices(body), len(body), self._whole_sent).run()
            return
        self.finish()

    def send_kept(self) -> None:
        """Send an answer that was kept back, before anything else is said."""
        kept, self._kept = self._kept, None
        if kept is not None and not self.transport.is_closing():
            self.transport.write(kept)

    def _whole_sent(self, error: Exception | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort()

    def send_parts(self, request: Request, response: Response, done: Callable[[Exception | None], None]) -> None:
        length = response.length
        chunked = length is None and request.http_minor > 0
        if length is None and not chunked:
            self._keep_alive = False
        framing = _CHUNKED if chunked else b"" if length is None else b"Content-Length: %d\r\n" % length
        head = self._head(request, response, framing)
        if request.method == "HEAD" or response.parts is None:
            self.transport.write(head)
            self.finish()
        else:
            turns = self.server.body_turns
            PartsSender(self._gate, turns, head, response.parts, length, done, chunked=chunked).run()

    def open_writer(self, request: Request, response: Response) -> BodyWriter | None:
        chunked = request.http_minor > 0 and not response.length
        if not chunked and not response.length:
            self._keep_alive = False
        framing = _CHUNKED if chunked else b""
        head = self._head(
            request, response, b"Content-Length: %d\r\n" % response.length if response.length else framing
        )
        if request.method == "HEAD":
            self.transport.write(head)
            self.finish()
            return None
        return BodyWriter(self._gate, self.server.loop, head, chunked)

    def break_off(self) -> None:
        # No last chunk: the client must be able to tell a broken stream from a finished one.
        self._exchange = None
        self._hang_up()

    def switch_protocol(self, request: Request, response: Response) -> None:
        head = response_head.prefix(1, 101, b"")[0] + response_head.extra_lines(response.headers) + b"\r\n"
        leftover = self._input.take()
        self.transport.write(head)
        self._exchange = self._body = None
        self._closing = True
        self._resume_reading()
        if response.upgrade is not None:
            protocol = self._upgraded = response.upgrade(self.transport, leftover)
            self.server.hand_over(self)
            protocol.connection_made(self.transport)
            if self._gate.paused:
                protocol.pause_writing()

    def finish(self, trailers: Trailers = ()) -> None:
        """The answer is written, its trailers by its writer: on to the next request, or hang up."""
        exchange, self._exchange, self._body = self._exchange, None, None
        if exchange is not None:
            exchange.end()
        self._since = self.server.now
        if not self._keep_alive or self.server.draining:
            return self._hang_up()
        if self._gate.paused:
            self._pause_reading()
            return None
        if self._reading_paused:
            self._resume_reading()
        if not self._input.data:
            return self.server.polling.expect()
        return None if self._processing else self._process()

    # Ends

    def _refuse(self, refusal: Refusal) -> None:
        text = f"HTTP/1.1 {refusal.status_line}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        self.send_kept()
        self.transport.write((text + refusal.text).encode())
        self._exchange = None
        self._closing = True
        self._input.take()
        if refusal.status_line.startswith("431"):
            self._linger()
        else:
            self.transport.close()

    def _hang_up(self) -> None:
        self.send_kept()
        unread = self._decoder is not None and not self._expects_continue
        self._closing = True
        self._input.take()
        self._decoder = None
        if unread:
            self._linger()
        else:
            self.transport.close()
        if self.server.draining:
            # TLS waits for the client's own goodbye, and clients with idle connections do not look at them.
            self.server.loop.call_later(self.server.limits.goodbye, self.transport.abort)

    def _linger(self) -> None:
        # Closing a socket on which input is still arriving resets it, and the client may lose the answer. So drop what
        # arrives for a moment; a client that has read the answer closes by itself.
        self._resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.server.loop.call_later(self.server.limits.linger, self.transport.close)

    def abort(self) -> None:
        """Drop the connection at once."""
        self._closing = True
        self.transport.abort()

    def drain_upgraded(self) -> None:
        """The server stops: tell who took over the connection."""
        if isinstance(self._upgraded, Upgraded):
            self._upgraded.drain_server()

    def close_upgraded(self) -> None:
        """Close, once what is written is sent, what is no HTTP connection any more."""
        self.drain_upgraded()
        self.transport.close()

    def drain(self) -> None:
        """The server stops: close, now or after the answer under way."""
        if self.idle:
            self._hang_up()

    @property
    def idle(self) -> bool:
        """No request is being received or answered."""
        return self._exchange is None and self._decoder is None

    def check_time(self, now: float) -> None:
        """Close when idle, slow with a head, or not reading an answer for too long; start a handler with a late body.

        Where a handler waits for more of a body, have the loop look at the socket anew. uvloop tells of a reset once
        and then forgets the socket: behind input that was there to be read, nobody would hear of it.
        """
        limits = self.server.limits
        waited = now - self._since
        if waited > SILENT_SECONDS:
            self.server.parking.take(self.transport)
        if self._awaiting_body:
            if waited > limits.body_grace and self._exchange is not None:
                self._awaiting_body = False
                self._exchange.start()
        elif self._exchange is None:
            slow = self._partial or self._decoder is not None
            if slow and waited > limits.header_timeout:
                self.abort()
            elif not slow and waited > limits.idle_timeout and not self._closing:
                self._hang_up()
        elif self._gate.paused and not self._exchange.waiting:
            if waited > limits.unread_timeout:
                self.abort()
        elif self._decoder is not None and not self._reading_paused:
            self._pause_reading()
            self._resume_reading()


def _slices(body: bytes) -> Iterator[bytes]:
    return (body[at : at + BATCH] for at in range(0, len(body), BATCH))
