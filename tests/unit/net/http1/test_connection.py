import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.net.messages import BodyTooLarge, BodyWriter, MalformedBody, Request, Response
from pilothouse.net.server import HttpServer

ERROR_HEADERS = b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"


async def echo(request: Request) -> Response:
    body = await request.body()
    text = b"%b %b?%b %b" % (request.method.encode(), request.path.encode(), request.query.encode(), body)
    return Response(200, text, b"text/plain", [(b"X-Extra", b"1")])


def bodies(stream: bytes) -> list[bytes]:
    """The bodies of a stream of answers that all have a Content-Length."""
    found = []
    while stream:
        head, _, stream = stream.partition(b"\r\n\r\n")
        length = next(int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: "))
        found.append(stream[:length])
        stream = stream[length:]
    return found


async def test_an_ordinary_answer(serve: Any) -> None:
    client = await (await serve(echo)).dial()
    client.send(b"GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\n\r\n")
    head, body = await client.answer()
    lines = head.split(b"\r\n")
    assert lines[:3] == [b"HTTP/1.1 200 OK", b"Content-Type: text/plain", b"X-Extra: 1"]
    assert lines[3].startswith(b"Date: ") and lines[3].endswith(b" GMT")
    assert lines[4:] == [b"Content-Length: 13", b"", b""]
    assert body == b"GET /a b?c=d "


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", b"400 Bad Request: missing required Host header"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"400 Bad Request: malformed Host header"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", b"400 Bad Request: invalid header name"),
        (b"GET /\r\n", b"400 Bad Request"),
        (b"\r\n\r\n", b"400 Bad Request"),
        (b"\x16\x03\x01\x02\x00\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\nHost: x\n\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: b\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", b"505 HTTP Version Not Supported: unsupported protocol version"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", b"400 Bad Request"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * (1 << 21), b"431 Request Header Fields Too Large"),
    ],
)
async def test_refusals_are_those_of_go(serve: Any, request_bytes: bytes, answer: bytes) -> None:
    running = await serve(echo)
    assert await running.exchange(request_bytes) == b"HTTP/1.1 " + answer + ERROR_HEADERS + answer


async def test_an_unsupported_transfer_encoding_is_501(serve: Any) -> None:
    answer = await (await serve(echo)).exchange(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n")
    assert answer == b"HTTP/1.1 501 Not Implemented" + ERROR_HEADERS + b"Unsupported transfer encoding"


async def test_an_unknown_expectation_is_417(serve: Any) -> None:
    answer = await (await serve(echo)).exchange(b"GET / HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 417 Expectation Failed\r\n")


async def test_with_both_lengths_the_chunks_count_and_the_connection_ends(serve: Any) -> None:
    answer = await (await serve(echo)).exchange(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nbody\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert b"Connection: close\r\n" in answer
    assert bodies(answer) == [b"POST /? body"]


CONVERSATION = (
    b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
    b"POST /2?q HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\r\n"
    b"GET /3 HTTP/1.1\r\nHost: x\r\n\r\n"
    b"PUT /4 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: t\r\n\r\n"
    b"GET /5 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"
)
ANSWERS = [b"GET /1? ", b"POST /2?q hello", b"GET /3? ", b"PUT /4? abcde", b"GET /5? "]


async def test_pipelined_requests_are_answered_in_order(serve: Any) -> None:
    assert bodies(await (await serve(echo)).exchange(CONVERSATION)) == ANSWERS


async def test_a_crowd_gets_its_answers_in_order_and_whole(serve: Any) -> None:
    async def answer(request: Request) -> Response:
        if request.path == "/stream":

            async def stream(writer: BodyWriter) -> None:
                writer.write(b"streamed")

            return Response(200, b"", b"text/plain", stream=stream, length=8)
        return Response(200, request.path.encode(), b"text/plain")

    running = await serve(answer)
    crowd = [await running.dial() for _ in range(16)]
    one, close = b"GET /%b HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for _ in range(5):
        for client in crowd:
            client.send(one % b"first")
        assert [(await client.answer())[1] for client in crowd] == [b"/first"] * 16
        for client in crowd:
            client.send(one % b"second" + one % b"stream" + one % b"third")
        for client in crowd:
            assert [(await client.answer())[1] for _ in range(3)] == [b"/second", b"streamed", b"/third"]
    for client in crowd:
        client.send(one % b"last" + close)
    assert [bodies(await client.rest()) for client in crowd] == [[b"/last", b"/end"]] * 16


async def test_pipelined_requests_wait_for_a_suspended_one(serve: Any) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/1":
            await gate.wait()
        elif not gate.is_set():
            raise AssertionError("overtaken")
        return await echo(request)

    running = await serve(handler)
    client = await running.dial()
    client.send(CONVERSATION)
    while not running.server.waiting:
        await asyncio.sleep(0)
    gate.set()
    assert bodies(await client.rest()) == ANSWERS


class Captured:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = close

    def writelines(self, pieces: list[bytes]) -> None:
        self.written += b"".join(pieces)

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    resume_reading = pause_reading

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> None:
        return None


@settings(max_examples=80)
@given(cuts=st.lists(st.integers(0, len(CONVERSATION)), max_size=12))
def test_splitting_the_stream_changes_nothing(cuts: list[int]) -> None:
    asyncio.run(_feed_in_pieces(sorted(cuts)))


def test_byte_by_byte() -> None:
    asyncio.run(_feed_in_pieces(list(range(len(CONVERSATION)))))


async def _feed_in_pieces(cuts: list[int]) -> None:
    edges = zip([0, *cuts], [*cuts, len(CONVERSATION)], strict=True)
    transport = await _feed([CONVERSATION[begin:end] for begin, end in edges])
    assert bodies(transport.written) == ANSWERS
    assert transport.closed


async def _feed(pieces: list[bytes]) -> Captured:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    server = HttpServer(echo)
    protocol = server.protocol()
    transport: Any = Captured()
    protocol.connection_made(transport)
    for piece in pieces:
        if piece and not transport.closed:
            protocol.data_received(piece)
        for _ in range(4):
            await asyncio.sleep(0)
    protocol.connection_lost(None)
    await server.close()
    assert not problems
    return transport  # type: ignore[no-any-return]


FRAGMENTS = [
    *(b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", b"GET / HTTP/1.0\r\n", b"Host: x\r\n", b"\r\n", b"\r", b"\n"),
    *(
        b"Content-Length: 3\r\n",
        b"Content-Length: 300000\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
    ),
    *(
        b"3\r\nabc\r\n",
        b"0\r\n\r\n",
        b"abc",
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"\x00",
        b" ",
        b":",
    ),
]


@settings(max_examples=100)
@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=4)), max_size=14))
def test_no_input_breaks_the_protocol(pieces: list[bytes]) -> None:
    asyncio.run(_feed(pieces))
    transport = asyncio.run(_feed([b"".join(pieces)]))
    assert transport.written == b"" or transport.written.startswith(b"HTTP/1.")


@settings(max_examples=100)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_splitting_any_stream_changes_nothing(pieces: list[bytes]) -> None:
    split, whole = asyncio.run(_feed(pieces)), asyncio.run(_feed([b"".join(pieces)]))
    assert _undated(split.written) == _undated(whole.written)
    assert split.closed == whole.closed


def _undated(stream: bytes) -> list[bytes]:
    lines = stream.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"").split(b"\r\n")
    return [line for line in lines if not line.startswith(b"Date: ")]


@pytest.mark.parametrize(
    ("head", "status_line", "connection"),
    [
        (b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK", None),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"HTTP/1.0 200 OK", b"keep-alive"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n", b"HTTP/1.1 200 OK", b"close"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK", None),
    ],
)
async def test_keep_alive(serve: Any, head: bytes, status_line: bytes, connection: bytes | None) -> None:
    client = await (await serve(echo)).dial()
    client.send(head)
    lines = (await client.answer())[0].split(b"\r\n")
    assert lines[0] == status_line
    assert [line[12:] for line in lines if line.startswith(b"Connection: ")] == ([connection] if connection else [])
    if connection == b"close" or (connection is None and head.startswith(b"GET / HTTP/1.0")):
        assert await client.rest() == b""
    else:
        client.send(head)
        assert (await client.answer())[0].startswith(status_line)


async def test_head_has_the_headers_of_get_and_no_body(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/parts":
            return Response(200, parts=[b"abc"], length=3)
        return Response(200, b"abc")

    answer = await (await serve(handler)).exchange(
        b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD /parts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    assert answer.count(b"Content-Length: 3\r\n") == 2
    assert b"abc" not in answer


@pytest.mark.parametrize("status", [204, 304])
async def test_statuses_without_a_body(serve: Any, status: int) -> None:
    async def handler(_: Request) -> Response:
        return Response(status, b"ignored", b"")

    answer = await (await serve(handler)).exchange(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n") and b"Content-Length" not in answer


async def test_repeated_headers_and_a_dict_of_ones_own(serve: Any) -> None:
    seen = []

    async def handler(request: Request) -> Response:
        seen.append((request.headers[b"a"], request.header_values(b"a"), request.header_values(b"none")))
        del request.headers[b"a"]
        return Response()

    head = b"GET / HTTP/1.1\r\nHost: x\r\nA: 1\r\na: 2\r\n\r\n"
    client = await (await serve(handler)).dial()
    client.send(head + head)
    await client.answer()
    await client.answer()
    assert seen == [(b"1", [b"1", b"2"], [])] * 2


async def test_continue_is_sent_when_the_body_is_asked_for(serve: Any) -> None:
    client = await (await serve(echo)).dial()
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"ok")
    assert (await client.answer())[1] == b"POST /? ok"


async def test_an_answer_instead_of_continue_ends_the_connection(serve: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(401, b"no")

    answer = await (await serve(handler)).exchange(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n") and b"Connection: close\r\n" in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"Content-Length: 11\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n",
    ],
)
async def test_a_body_over_the_limit(serve: Any, sent: bytes) -> None:
    async def handler(request: Request) -> Response:
        try:
            return Response(200, await request.body(limit=10))
        except BodyTooLarge as error:
            return Response(413, str(error.limit).encode())

    client = await (await serve(handler)).dial()
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + sent)
    head = await client.head()
    if b"100 Continue" in head:
        head = await client.head()
    assert head.startswith(b"HTTP/1.1 413 Request Entity Too Large\r\n")


async def test_an_unread_body_is_skipped(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, request.path.encode())

    body = b"x" * 200_000
    answer = await (await serve(handler)).exchange(
        b"POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
        + body
        + b"GET /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    assert bodies(answer) == [b"/1", b"/2"]


async def test_a_huge_unread_body_is_not_read(serve: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"done")

    client = await (await serve(handler)).dial()
    client.send(b"POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1000)
    head, body = await client.answer()
    assert b"Connection: close\r\n" in head and body == b"done"
    assert await client.rest() == b""


async def test_a_body_in_pieces_with_back_pressure(serve: Any) -> None:
    sizes = []

    async def handler(request: Request) -> Response:
        total = 0
        async for piece in request.body_pieces():
            sizes.append(len(piece))
            total += len(piece)
            await asyncio.sleep(0)
        return Response(200, b"%d" % total)

    answer = await (await serve(handler)).exchange(
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 5_000_000
    )
    assert bodies(answer) == [b"5000000"]
    assert max(sizes) <= 256 * 1024


async def test_a_malformed_chunked_body_reaches_the_reader_and_ends_the_connection(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        try:
            await request.body()
        except MalformedBody as error:
            return Response(400, str(error).encode())
        return Response()

    answer = await (await serve(handler)).exchange(
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert bodies(answer) == [b"invalid byte in chunk length"]


async def test_a_malformed_body_nobody_catches_is_400(serve: Any) -> None:
    answer = await (await serve(echo)).exchange(
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    )
    assert bodies(answer) == [b"400 Bad Request"]


@pytest.mark.parametrize("suspend", [False, True])
async def test_an_escaping_exception_is_logged_and_500(
    serve: Any, suspend: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Request) -> Response:
        if suspend:
            await asyncio.sleep(0)
        raise RuntimeError("oops")

    with caplog.at_level(logging.ERROR):
        answer = await (await serve(handler)).exchange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500 Internal Server Error\r\n") and b"Connection: close\r\n" in answer
    assert "oops" in caplog.text


@pytest.mark.parametrize(
    "header", [(b"A", b"b\r\nSet-Cookie: x"), (b"A\n", b"b"), (b"A", b"b\r"), (b"A", b"b\n"), (b"A", b"b\r\n")]
)
async def test_header_injection_is_refused(serve: Any, header: tuple[bytes, bytes]) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"", b"text/plain", [header])

    answer = await (await serve(handler)).exchange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 500 ") and b"Set-Cookie" not in answer


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_disconnect_cancels_the_handler(serve: Any, streaming: bool) -> None:
    ended = asyncio.get_running_loop().create_future()
    told = []

    async def wait(request: Request) -> None:
        request.on_disconnect(lambda: told.append(True))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set_result(None)

    async def handler(request: Request) -> Response:
        if not streaming:
            await wait(request)

        async def stream(writer: BodyWriter) -> None:
            writer.write(b"first")
            await wait(request)

        return Response(stream=stream)

    running = await serve(handler)
    client = await running.dial()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    while not running.server.waiting:
        await asyncio.sleep(0)
    await client.close()
    await ended
    assert told == [True]


async def test_nothing_of_an_answered_request_waits_for_the_garbage_collector(serve: Any) -> None:
    """Who wants to hear of a disconnect knows the request: a cycle, which would hold its body."""
    seen: list[weakref.ref[object]] = []

    class Caller:
        def __init__(self, request: Request) -> None:
            self.request = request

        def hear(self) -> None:
            """Nobody disconnects here."""

    async def handler(request: Request) -> Response:
        caller = Caller(request)
        request.on_disconnect(caller.hear)
        seen.append(weakref.ref(caller))
        return Response(200, b"", b"text/plain")

    running = await serve(handler)
    client = await running.dial()
    gc.disable()
    try:
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.answer()
        assert [ref() for ref in seen] == [None]
    finally:
        gc.enable()
    await client.close()


async def test_an_upgrade_hands_the_connection_over(serve: Any) -> None:
    class Shout(asyncio.Protocol):
        def __init__(self, transport: asyncio.Transport, leftover: bytes) -> None:
            self.transport = transport
            transport.write(leftover.upper())

        def data_received(self, data: bytes) -> None:
            self.transport.write(data.upper())

    async def handler(_: Request) -> Response:
        return Response(101, headers=[(b"Connection", b"Upgrade"), (b"Upgrade", b"shout")], upgrade=Shout)

    client = await (await serve(handler)).dial()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nearly ")
    assert await client.head() == (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n")
    assert await client.reader.readexactly(6) == b"EARLY "
    client.send(b"late")
    assert await client.reader.readexactly(4) == b"LATE"


async def test_a_half_closed_client_gets_its_answer(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        return Response(parts=[b"x" * 1_000_000] * 8, length=8_000_000)

    client = await (await serve(handler)).dial()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    client.writer.write_eof()
    assert len((await client.answer())[1]) == 8_000_000
    assert await client.rest() == b""


async def test_an_answer_can_ask_for_the_end_of_the_connection(serve: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"bye", close=True)

    answer = await (await serve(handler)).exchange(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"Connection: close\r\n" in answer


@pytest.mark.parametrize("suspend", [False, True])
async def test_an_answer_of_the_wrong_type_drops_the_connection(
    serve: Any, suspend: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Request) -> Any:
        if suspend:
            await asyncio.sleep(0)
        return None

    client = await (await serve(handler)).dial()
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    with caplog.at_level(logging.ERROR), pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await client.answer()
    assert "answer not sent" in caplog.text


async def test_pipelined_input_beyond_the_bound_is_not_read(serve: Any) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        await gate.wait()
        return Response(200, request.path.encode())

    running = await serve(handler)
    client = await running.dial()
    one = b"GET /%06d HTTP/1.1\r\nHost: x\r\nPadding: " + b"p" * 4096 + b"\r\n\r\n"
    client.send(b"".join(one % n for n in range(1000)))
    (protocol,) = await _settled(running)
    assert protocol._input.pending < 1_000_000
    gate.set()
    for n in range(1000):
        assert (await client.answer())[1] == b"/%06d" % n


async def _settled(running: Any) -> list[Any]:
    for _ in range(200):
        await asyncio.sleep(0)
    return list(running.server.connections)


async def test_requests_wait_while_nobody_reads_the_answers(serve: Any) -> None:
    asked = 0

    async def handler(request: Request) -> Response:
        nonlocal asked
        asked += request.path == "/many"
        return Response(200, b"x" * 100_000)

    running = await serve(handler)
    deaf, other = await running.dial(), await running.dial()
    deaf.writer.transport.pause_reading()
    deaf.send(b"GET /many HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
    for _ in range(300):  # turns in which a thousand could have been answered
        other.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await other.answer()
    assert 0 < asked < 500
