import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.net.busy_polling import BusyPolling
from pilothouse.net.http2 import frames, huffman
from pilothouse.net.http2.settings import Http2Options
from pilothouse.net.messages import BodyWriter, CrowdedOut, Request, Response
from pilothouse.net.server import Limits


async def echo(request: Request) -> Response:
    body = await request.body()
    text = b"%b %b?%b %b" % (request.method.encode(), request.path.encode(), request.query.encode(), body)
    return Response(200, text, b"text/plain", [(b"X-Extra", b"1"), (b"X-Host", request.host)])


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


async def test_an_ordinary_answer(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "GET", "/a%20b?c=d")
    head, body = await client.answer(1)
    assert body == b"GET /a b?c=d "
    assert head.pop("date").endswith(" GMT")
    assert head == {
        ":status": "200",
        "content-type": "text/plain",
        "x-extra": "1",
        "x-host": "example:6443",
        "content-length": "13",
    }


async def test_the_settings_are_those_of_the_original(connect: Any) -> None:
    client = await connect(echo, http2=Http2Options(max_streams=7))
    payload = client.seen[0][3]
    pairs = {
        int.from_bytes(payload[at : at + 2], "big"): int.from_bytes(payload[at + 2 : at + 6], "big")
        for at in range(0, len(payload), 6)
    }
    assert pairs[frames.MAX_CONCURRENT_STREAMS] == 7
    assert pairs[frames.INITIAL_WINDOW_SIZE] == 256 * 1024
    assert pairs[frames.MAX_HEADER_LIST_SIZE] == (1 << 20) + 4096
    assert 8 not in pairs  # no extended CONNECT


async def test_the_same_head_again_and_again_means_the_same(connect: Any) -> None:
    client = await connect(echo)
    for number in range(1, 21, 2):
        client.ask(number, "GET", "/same" if number % 4 == 1 else f"/{number}", ("x-a", "b"))
        _, body = await client.answer(number)
        assert body == (b"GET /same? " if number % 4 == 1 else b"GET /%d? " % number)


async def test_clients_are_expected_to_go_on_after_the_last_answer(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/a":
            await gate.wait()
        told.append(request.path)
        return Response(200, b"")

    client = await connect(handler)
    monkeypatch.setattr(BusyPolling, "expect", lambda _: told.append("expect"))
    client.ask(1, "GET", "/a")
    client.ask(3, "GET", "/b")
    await client.answer(3)
    assert told == ["/b"]
    gate.set()
    await client.answer(1)
    assert told == ["/b", "/a", "expect"]


async def test_streams_are_answered_as_they_are_done(connect: Any) -> None:
    gates = {path: asyncio.Event() for path in ("/a", "/b")}

    async def handler(request: Request) -> Response:
        await gates[request.path].wait()
        return Response(200, request.path.encode())

    client = await connect(handler)
    client.ask(1, "GET", "/a")
    client.ask(3, "GET", "/b")
    await until(lambda: len(client.running.server.waiting) == 2)
    gates["/b"].set()
    assert (await client.answer(3))[1] == b"/b"
    gates["/a"].set()
    assert (await client.answer(1))[1] == b"/a"


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("pieces", [[b"abc"], [b"a", b"", b"bc"], [b"x" * 16384] * 40])
async def test_bodies(connect: Any, pieces: list[bytes], declared: bool) -> None:
    client = await connect(echo)
    length = sum(map(len, pieces))
    fields = [("content-length", str(length))] if declared else []
    client.ask(1, "POST", "/", *fields, ended=False)
    for piece in pieces[:-1]:
        client.send(frames.DATA, 0, 1, piece)
        await client.synchronize()
    client.send(frames.DATA, frames.END_STREAM, 1, pieces[-1])
    client.send(frames.SETTINGS, 0, 0, b"\0\4\x7f\xff\xff\xff")
    client.send(frames.WINDOW_UPDATE, 0, 0, b"\x7f\0\0\0")
    assert (await client.answer(1))[1] == b"POST /? " + b"".join(pieces)


async def test_trailers_end_a_body(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ended=False)
    client.send(frames.DATA, 0, 1, b"abc")
    client.send(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, client.encode([("x-checksum", "1")]))
    assert (await client.answer(1))[1] == b"POST /? abc"


def long_field(letters: int) -> bytes:
    """A header field, coded, of so many letters: eight times the letter a are five bytes."""
    coded = bytes.fromhex("18c6318c63") * (letters // 8)
    length = bytearray(integer(len(coded)))
    length[0] |= 0x80
    return b"\0\6x-long" + length + coded


def integer(value: int) -> bytes:
    """As HPACK has it behind one bit, for a number that does not fit into the other seven."""
    value -= 127
    out = bytearray(b"\x7f")
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def send_long(client: Any, number: int, block: bytes, flags: int = 0) -> None:
    """A header block in frames of the usual size."""
    first, *rest = [block[at : at + 16384] for at in range(0, len(block), 16384)]
    client.send(frames.HEADERS, flags, number, first)
    for piece in rest[:-1]:
        client.send(frames.CONTINUATION, 0, number, piece)
    client.send(frames.CONTINUATION, frames.END_HEADERS, number, rest[-1])


async def test_long_trailers_are_read(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ended=False)
    send_long(client, 1, long_field(200_000), frames.END_STREAM)
    assert (await client.answer(1))[1] == b"POST /? "
    assert not huffman._ahead


async def test_trailers_that_are_too_long_end_the_connection_without_another_head(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ended=False)
    send_long(client, 1, long_field(1_400_000), frames.END_STREAM)
    _, _, _, payload = await client.until(frames.GOAWAY)
    assert int.from_bytes(payload[4:8], "big") == frames.ENHANCE_YOUR_CALM
    assert frames.HEADERS not in [kind for kind, *_ in client.seen]


async def test_nothing_that_was_decoded_ahead_stays(connect: Any) -> None:
    """Not of a block either that ends the connection."""
    client = await connect(echo)
    send_long(client, 1, long_field(200_000) + b"\xff" * 8, frames.END_STREAM)
    _, _, _, payload = await client.until(frames.GOAWAY)
    assert int.from_bytes(payload[4:8], "big") == frames.COMPRESSION_ERROR
    assert not huffman._ahead


@pytest.mark.parametrize("size", [0, 3, 200_000])
async def test_trailers_come_after_the_body_of_an_answer(connect: Any, size: int) -> None:
    async def handle(request: Request) -> Response:
        await request.body()

        async def stream(writer: BodyWriter) -> None:
            writer.write(b"x" * size)
            writer.trailers = [*request.trailers, (b"X-Sum", b"%d" % size)]

        return Response(200, stream=stream)

    client = await connect(handle)
    client.ask(1, "POST", "/", ended=False)
    fields = client.encode([("x-checked", "yes")])
    client.send(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, fields)
    client.send(frames.WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4, "big"))
    client.send(frames.WINDOW_UPDATE, 0, 1, (1 << 20).to_bytes(4, "big"))
    head, body = await client.answer(1)
    assert (head[":status"], len(body), head["x-checked"], head["x-sum"]) == ("200", size, "yes", str(size))
    last = [frame for frame in client.seen if frame[2] == 1][-1]
    assert last[0] == frames.HEADERS and last[1] & frames.END_STREAM


async def test_padding_and_priority_are_taken_off(connect: Any) -> None:
    client = await connect(echo)
    block = b"\2" + b"\0\0\0\0\x10" + client.block("POST", "/") + b"\0\0"
    client.send(frames.HEADERS, frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY, 1, block)
    client.send(frames.DATA, frames.END_STREAM | frames.PADDED, 1, b"\3abc\0\0\0")
    assert (await client.answer(1))[1] == b"POST /? abc"


async def test_a_block_in_pieces(connect: Any) -> None:
    client = await connect(echo)
    block = client.block("GET", "/pieces", ("x-long", "y" * 20000))
    client.send(frames.HEADERS, frames.END_STREAM, 1, block[:10])
    client.send(frames.CONTINUATION, 0, 1, block[10:9000])
    client.send(frames.CONTINUATION, frames.END_HEADERS, 1, block[9000:])
    assert (await client.answer(1))[1] == b"GET /pieces? "


async def test_continue_is_said_when_the_body_is_wanted(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ("expect", "100-continue"), ("content-length", "2"), ended=False)
    _, _, _, payload = await client.until(frames.HEADERS, 1)
    assert client.decoder.decode(payload) == [(":status", "100")]
    client.send(frames.DATA, frames.END_STREAM, 1, b"ok")
    assert (await client.answer(1))[1] == b"POST /? ok"


async def test_the_answer_comes_before_a_body_nobody_reads(connect: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(403, b"no")

    client = await connect(handler)
    client.ask(1, "POST", "/", ended=False)
    head, _ = await client.answer(1)
    assert head[":status"] == "403"
    assert (await client.until(frames.RST_STREAM, 1))[3] == frames.NO_ERROR.to_bytes(4, "big")
    client.ask(3)
    assert (await client.answer(3))[0][":status"] == "403"


async def test_a_small_body_that_is_late_does_not_hold_up_its_handler(connect: Any) -> None:
    started = asyncio.Event()

    async def handler(request: Request) -> Response:
        started.set()
        return Response(200, await request.body())

    client = await connect(handler, limits=Limits(body_grace=0, sweep_interval=0.01))
    client.ask(1, "POST", "/", ("content-length", "2"), ended=False)
    await started.wait()
    client.send(frames.DATA, frames.END_STREAM, 1, b"ok")
    assert (await client.answer(1))[1] == b"ok"


@pytest.mark.parametrize("form", ["body", "parts", "parts of unknown length", "stream"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("size", [0, 5, 16384, 16385, 1_000_000])
async def test_forms_of_answers(connect: Any, form: str, method: str, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + b"z" * (size % 256)

    async def write(writer: BodyWriter) -> None:
        for at in range(0, size, 10_000):
            writer.write(content[at : at + 10_000])
            await writer.drain()

    async def handler(_: Request) -> Response:
        if form == "parts":
            return Response(parts=[content[at : at + 777] for at in range(0, size, 777)], length=size)
        if form == "parts of unknown length":
            return Response(parts=iter([content[at : at + 777] for at in range(0, size, 777)]), length=None)
        return Response(stream=write) if form == "stream" else Response(200, content)

    client = await connect(handler)
    client.send(frames.SETTINGS, 0, 0, b"\0\4\x7f\xff\xff\xff")
    client.send(frames.WINDOW_UPDATE, 0, 0, b"\x7f\0\0\0")
    client.ask(1, method)
    head, body = await client.answer(1)
    assert body == (content if method == "GET" else b"")
    assert head.get("content-length") == (str(size) if form in ("body", "parts") else None)
    client.ask(3)
    assert (await client.answer(3))[0][":status"] == "200"


async def test_windows_are_respected_and_shared(connect: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"x" * 100)

    client = await connect(handler, greet=False)
    client.greet([(frames.INITIAL_WINDOW_SIZE, 10)])
    client.ask(1)
    client.ask(3)
    await client.synchronize()
    data = [(number, len(payload)) for kind, _, number, payload in client.seen if kind == frames.DATA]
    assert data == [(1, 10), (3, 10)]
    client.send(frames.WINDOW_UPDATE, 0, 1, (90).to_bytes(4, "big"))
    assert len((await client.until(frames.DATA, 1))[3]) == 90
    client.send(frames.SETTINGS, 0, 0, b"\0\4" + (100).to_bytes(4, "big"))
    assert len((await client.until(frames.DATA, 3))[3]) == 90


async def test_streams_take_turns_when_the_window_of_all_opens(connect: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"x" * 100_000)

    client = await connect(handler, greet=False)
    client.greet([(frames.INITIAL_WINDOW_SIZE, 1 << 20)])
    client.ask(1)
    client.ask(3)
    await client.synchronize()
    assert sum(len(payload) for kind, _, _, payload in client.seen if kind == frames.DATA) == 65535
    client.seen.clear()
    client.send(frames.WINDOW_UPDATE, 0, 0, (65536).to_bytes(4, "big"))
    await client.synchronize()
    assert [number for kind, _, number, _ in client.seen if kind == frames.DATA][:4] in ([1, 3, 1, 3], [3, 1, 3, 1])


async def test_a_reset_cancels_the_handler(connect: Any) -> None:
    gone = asyncio.Event()

    async def handler(request: Request) -> Response:
        request.on_disconnect(gone.set)
        await asyncio.Event().wait()
        return Response()

    client = await connect(handler)
    client.ask(1)
    await until(lambda: client.running.server.waiting)
    client.send(frames.RST_STREAM, 0, 1, b"\0\0\0\x08")
    await gone.wait()
    await until(lambda: not client.running.server.waiting)


async def test_a_stream_that_breaks_off_is_reset(connect: Any, caplog: Any) -> None:
    async def write(writer: BodyWriter) -> None:
        writer.write(b"half")
        raise ValueError("broken")

    async def handler(_: Request) -> Response:
        return Response(stream=write)

    client = await connect(handler)
    client.ask(1)
    with pytest.raises(ConnectionError) as reset:
        await client.answer(1)
    assert reset.value.args == (frames.INTERNAL_ERROR,)


async def test_headers_of_a_connection_are_refused(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1, "GET", "/", ("upgrade", "websocket"))
    head, body = await client.answer(1)
    assert (head[":status"], body) == ("400", b'request header "Upgrade" is not valid in HTTP/2\n')


async def test_a_client_without_the_protocol_gets_http_1(serve: Any, connect: Any) -> None:
    from tests.unit.net.http2.conftest import client_context

    client = await connect(echo)
    plain = await client.running.dial(ssl=client_context("http/1.1"))
    plain.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await plain.answer())[0].startswith(b"HTTP/1.1 200 OK")


# What a client must not do: RFC 9113, by section


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ((frames.DATA, 0, 0, b""), frames.PROTOCOL_ERROR),  # 6.1
        ((frames.DATA, 0, 1, b""), frames.PROTOCOL_ERROR),  # 5.1 idle
        ((frames.DATA, frames.PADDED, 1, b"\5a"), frames.PROTOCOL_ERROR),  # 6.1
        ((frames.HEADERS, frames.END_HEADERS, 0, b"\x82"), frames.PROTOCOL_ERROR),  # 6.2
        ((frames.HEADERS, frames.END_HEADERS, 2, b"\x82"), frames.PROTOCOL_ERROR),  # 5.1.1
        ((frames.HEADERS, frames.END_HEADERS, 1, b"\xff"), frames.COMPRESSION_ERROR),  # 4.3
        ((frames.PRIORITY, 0, 0, b"\0\0\0\0\0"), frames.PROTOCOL_ERROR),  # 6.3
        ((frames.PRIORITY, 0, 1, b""), frames.FRAME_SIZE_ERROR),
        ((frames.RST_STREAM, 0, 0, b"\0\0\0\0"), frames.PROTOCOL_ERROR),  # 6.4
        ((frames.RST_STREAM, 0, 1, b"\0\0\0\0"), frames.PROTOCOL_ERROR),
        ((frames.SETTINGS, 0, 1, b""), frames.PROTOCOL_ERROR),  # 6.5
        ((frames.SETTINGS, 0, 0, b"\0"), frames.FRAME_SIZE_ERROR),
        ((frames.SETTINGS, frames.ACK, 0, b"\0\0\0\0\0\0"), frames.FRAME_SIZE_ERROR),
        ((frames.SETTINGS, 0, 0, b"\0\2\0\0\0\2"), frames.PROTOCOL_ERROR),
        ((frames.SETTINGS, 0, 0, b"\0\4\x80\0\0\0"), frames.FLOW_CONTROL_ERROR),
        ((frames.SETTINGS, 0, 0, b"\0\5\0\0\0\1"), frames.PROTOCOL_ERROR),
        ((frames.SETTINGS, 0, 0, b"\0\1\0\0\0\1" * 2), frames.PROTOCOL_ERROR),  # as in Go
        ((frames.PUSH_PROMISE, 0, 1, b"\0\0\0\0"), frames.PROTOCOL_ERROR),  # 8.4
        ((frames.PING, 0, 1, b"12345678"), frames.PROTOCOL_ERROR),  # 6.7
        ((frames.PING, 0, 0, b"1"), frames.FRAME_SIZE_ERROR),
        ((frames.GOAWAY, 0, 1, b"\0" * 8), frames.PROTOCOL_ERROR),  # 6.8
        ((frames.WINDOW_UPDATE, 0, 0, b"\0\0\0\0"), frames.PROTOCOL_ERROR),  # 6.9
        ((frames.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), frames.FLOW_CONTROL_ERROR),
        ((frames.WINDOW_UPDATE, 0, 1, b"\0\0\0\1"), frames.PROTOCOL_ERROR),
        ((frames.CONTINUATION, frames.END_HEADERS, 1, b"\x82"), frames.PROTOCOL_ERROR),  # 6.10
    ],
)
async def test_mistakes_that_end_the_connection(connect: Any, frame: tuple[int, int, int, bytes], code: int) -> None:
    client = await connect(echo)
    client.send(*frame)
    assert await client.farewell() == code


async def test_settings_come_first(connect: Any) -> None:
    client = await connect(echo, greet=False)
    client.writer.write(frames.PREFACE)
    client.send(frames.PING, payload=b"12345678")
    assert await client.farewell() == frames.PROTOCOL_ERROR


async def test_another_protocol_is_shown_out(connect: Any) -> None:
    client = await connect(echo, greet=False)
    client.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert await client.farewell() == frames.PROTOCOL_ERROR


async def test_nothing_comes_between_the_pieces_of_a_block(connect: Any) -> None:
    client = await connect(echo)
    client.send(frames.HEADERS, 0, 1, client.block())
    client.send(frames.PING, payload=b"12345678")
    assert await client.farewell() == frames.PROTOCOL_ERROR


async def test_a_stream_is_used_once(connect: Any) -> None:
    client = await connect(echo)
    client.ask(3)
    await client.answer(3)
    client.ask(1)
    assert await client.farewell() == frames.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        (lambda client: client.send(frames.DATA, 0, 1, b"more than declared"), frames.PROTOCOL_ERROR),
        (lambda client: client.send(frames.DATA, frames.END_STREAM, 1, b"x"), frames.PROTOCOL_ERROR),
        (lambda client: client.send(frames.WINDOW_UPDATE, 0, 1, b"\0\0\0\0"), frames.PROTOCOL_ERROR),
        (lambda client: client.send(frames.WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff"), frames.FLOW_CONTROL_ERROR),
        (lambda client: client.send(frames.PRIORITY, 0, 1, b"\0\0\0\1\0"), frames.PROTOCOL_ERROR),
        (lambda client: client.send(frames.HEADERS, 4, 1, client.encode([("a", "b")])), frames.PROTOCOL_ERROR),
        (lambda client: client.send(frames.HEADERS, 5, 1, client.encode([(":path", "b")])), frames.PROTOCOL_ERROR),
    ],
)
async def test_mistakes_that_end_the_stream(connect: Any, mistake: Any, code: int) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ("content-length", "3"), ended=False)
    mistake(client)
    assert (await client.until(frames.RST_STREAM, 1))[3] == code.to_bytes(4, "big")
    client.ask(3)
    assert (await client.answer(3))[1] == b"GET /? "


async def test_data_after_the_end(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1)
    await client.answer(1)
    client.send(frames.DATA, 0, 1, b"x")
    assert (await client.until(frames.RST_STREAM, 1))[3] == frames.STREAM_CLOSED.to_bytes(4, "big")


async def test_unknown_frames_and_settings_are_ignored(connect: Any) -> None:
    client = await connect(echo)
    client.send(0xEE, 0xFF, 7, b"whatever")
    client.send(frames.SETTINGS, 0, 0, b"\xff\xff\0\0\0\1")
    client.ask(1)
    assert (await client.answer(1))[1] == b"GET /? "


async def test_more_than_the_window_of_a_stream(connect: Any) -> None:
    async def handler(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    client = await connect(handler)
    client.ask(1, "POST", "/", ended=False)
    for _ in range(33):
        client.send(frames.DATA, 0, 1, b"x" * 16384)
    assert (await client.until(frames.RST_STREAM, 1))[3] == frames.FLOW_CONTROL_ERROR.to_bytes(4, "big")


async def test_a_body_that_is_read_flows(connect: Any) -> None:
    size = 3 << 20

    async def handler(request: Request) -> Response:
        total = 0
        async for piece in request.body_pieces():
            total += len(piece)
        return Response(200, b"%d" % total)

    client = await connect(handler)
    client.ask(1, "POST", "/", ended=False)
    windows, sent = {0: 1 << 20, 1: 256 << 10}, 0
    while sent < size:
        while min(windows.values()) < 16384:
            _, _, number, payload = await client.until(frames.WINDOW_UPDATE)
            windows[number] += int.from_bytes(payload, "big")
        client.send(frames.DATA, 0, 1, b"x" * 16384)
        sent += 16384
        windows = {number: window - 16384 for number, window in windows.items()}
    client.send(frames.DATA, frames.END_STREAM, 1)
    assert (await client.answer(1))[1] == b"%d" % size


# Ends


async def test_draining_finishes_what_has_begun_and_takes_no_more(connect: Any) -> None:
    gate = asyncio.Event()

    async def handler(_: Request) -> Response:
        await gate.wait()
        return Response(200, b"done")

    client = await connect(handler)
    client.ask(1)
    await until(lambda: client.running.server.waiting)
    client.running.server.begin_drain()
    _, _, _, payload = await client.until(frames.GOAWAY)
    assert (int.from_bytes(payload[:4], "big"), int.from_bytes(payload[4:8], "big")) == (1, frames.NO_ERROR)
    client.ask(3)
    await client.synchronize()
    gate.set()
    assert (await client.answer(1))[1] == b"done"
    assert not await client.reader.read()
    assert all(number != 3 for _, _, number, _ in client.seen)
    assert await client.running.server.wait_idle(60)


async def test_draining_closes_an_idle_connection(connect: Any) -> None:
    client = await connect(echo)
    client.running.server.begin_drain()
    assert await client.farewell() == frames.NO_ERROR


async def test_goaway_by_chance(connect: Any) -> None:
    client = await connect(echo, http2=Http2Options(goaway_chance=1.0))
    client.ask(1)
    _, body = await client.answer(1)
    assert body == b"GET /? "
    assert any(kind == frames.GOAWAY for kind, *_ in client.seen)
    assert not await client.reader.read()


async def test_a_client_that_goes_away_is_let_go(connect: Any) -> None:
    client = await connect(echo)
    client.ask(1)
    client.send(frames.GOAWAY, 0, 0, b"\0" * 8)
    await client.answer(1)
    assert await client.farewell() == frames.NO_ERROR


@pytest.mark.parametrize("greeted", [True, False])
async def test_idle_connections_end(connect: Any, greeted: bool) -> None:
    client = await connect(echo, greet=greeted, limits=Limits(idle_timeout=0, header_timeout=0, sweep_interval=0.01))
    while await client.reader.read(1 << 16):
        pass


async def test_a_block_without_end_is_not_waited_for(connect: Any) -> None:
    client = await connect(echo, limits=Limits(header_timeout=0, sweep_interval=0.01))
    client.send(frames.HEADERS, 0, 1, client.block())
    while await client.reader.read(1 << 16):
        pass


FRAME = st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 7), st.binary(max_size=40))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(FRAME, max_size=12))
async def test_noise_harms_nobody(connect: Any, sent: list[tuple[int, int, int, bytes]]) -> None:
    client = await connect(echo)
    client.ask(1, "POST", "/", ended=False)
    for frame in sent:
        client.send(*frame)
    client.send(frames.PING, 0, 1, b"12345678")  # ends the connection if nothing else has
    while await client.reader.read(1 << 16):
        pass
    await until(lambda: not client.running.server.connections)
    assert not client.running.server.waiting


async def test_handlers_of_cancelled_requests_count_until_they_end(connect: Any) -> None:
    gate, started = asyncio.Event(), []

    async def handler(request: Request) -> Response:
        started.append(request.path)
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:  # cleaning up takes its time
                continue
        return Response(200, request.path.encode())

    client = await connect(handler, http2=Http2Options(max_streams=2))
    for number, path in ((1, "/a"), (3, "/b")):
        client.ask(number, "GET", path)
        await client.synchronize()
        client.send(frames.RST_STREAM, 0, number, b"\0\0\0\x08")
    client.ask(5, "GET", "/c")
    await client.synchronize()
    begun = list(started)
    gate.set()
    assert begun == ["/a", "/b"]
    assert (await client.answer(5))[1] == b"/c"


async def test_requests_wait_while_answers_may_not_be_sent(connect: Any) -> None:
    started = []

    async def handler(request: Request) -> Response:
        started.append(request.path)
        return Response(200, b"x" * 600_000)

    client = await connect(handler, greet=False)
    client.greet([(frames.INITIAL_WINDOW_SIZE, 0)])
    for number in range(1, 11, 2):
        client.ask(number, "GET", f"/{number}")
    await client.synchronize()
    assert started == ["/1", "/3"]
    client.send(frames.SETTINGS, 0, 0, b"\0\4\0\x10\0\0")
    client.send(frames.WINDOW_UPDATE, 0, 0, b"\x7f\0\0\0")
    for _ in range(5):
        while not (await client.until(frames.DATA))[1] & frames.END_STREAM:
            pass
    assert started == ["/1", "/3", "/5", "/7", "/9"]


async def test_an_answer_that_nobody_takes_ends(connect: Any) -> None:
    """Those beside it, which may wait for what they have to say, do not."""

    async def handler(request: Request) -> Response:
        async def stream(writer: BodyWriter) -> None:
            writer.write(b"y" * 100)
            await asyncio.Event().wait()

        return Response(200, stream=stream) if request.path == "/stream" else Response(200, b"x" * 100)

    client = await connect(handler, greet=False, limits=Limits(unread_timeout=-1, sweep_interval=3600))
    client.greet([(frames.INITIAL_WINDOW_SIZE, 10)])
    client.ask(1, "GET", "/stream")
    client.ask(3)
    await client.synchronize()
    client.running.server.sweep()
    assert (await client.until(frames.RST_STREAM, 3))[3] == frames.CANCEL.to_bytes(4, "big")
    await client.synchronize()
    assert [number for kind, _, number, _ in client.seen if kind == frames.RST_STREAM] == [3]


async def test_bodies_and_heads_that_do_not_end_give_way(connect: Any) -> None:
    async def handler(request: Request) -> Response:
        try:
            return Response(200, b"%d" % len(await request.body()))
        except CrowdedOut:
            return Response(429)

    limits = Limits(held_input_bytes=100_000, body_grace=-1, sweep_interval=3600)
    client = await connect(handler, limits=limits)
    for number in (1, 3):
        client.ask(number, "POST", "/", ended=False)
        for _ in range(4):
            client.send(frames.DATA, 0, number, b"x" * 16384)
    await client.synchronize()
    client.running.server.sweep()
    client.send(frames.DATA, frames.END_STREAM, 3, b"x")
    assert (await client.answer(1))[0][":status"] == "429"
    assert (await client.answer(3))[1] == b"65537"
    held = client.running.server.held_input
    assert held.total == 0
    client.send(frames.HEADERS, 0, 5, b"x" * 16384)
    for _ in range(6):
        client.send(frames.CONTINUATION, 0, 5, b"x" * 16384)
    with pytest.raises((ConnectionError, EOFError)):
        await client.synchronize()
    assert held.total == 0
