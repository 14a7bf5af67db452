import asyncio
import logging
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from pilothouse.net import writing
from pilothouse.net.messages import BodyWriter, ClientDisconnected, Request, Response

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_parts_arrive_whole(serve: Any) -> None:
    parts = [b"%07d" % n for n in range(100_000)]

    async def handler(_: Request) -> Response:
        return Response(200, parts=parts, length=700_000)

    client = await (await serve(handler)).dial()
    client.send(GET + GET)
    for _ in range(2):
        assert (await client.answer())[1] == b"".join(parts)


@pytest.mark.parametrize("parts", [[], [b"", b"one"], [b"%07d" % n for n in range(100_000)]])
async def test_parts_of_unknown_length_are_chunked(serve: Any, parts: list[bytes]) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, parts=iter(parts), length=None)

    client = await (await serve(handler)).dial()
    for _ in range(2):
        client.send(GET)
        head, body = await client.answer()
        assert b"Transfer-Encoding: chunked\r\n" in head and b"Content-Length" not in head
        assert body == b"".join(parts)
    client.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    answer = (await client.rest()).partition(b"\r\n\r\n")
    assert b"chunked" not in answer[0] and answer[2] == b"".join(parts)


async def test_a_slow_reader_holds_the_parts_back(serve: Any) -> None:
    taken = 0
    part = b"x" * 4096

    def parts() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(16_384):
            taken += 1
            yield part

    async def handler(_: Request) -> Response:
        return Response(200, parts=parts(), length=16_384 * 4096)

    client = await (await serve(handler)).dial()
    client.send(GET)
    await client.head()
    previous = -1
    while taken != previous:  # until the server takes no more: kernel buffers are full, the transport is paused
        previous = taken
        for _ in range(200):
            await asyncio.sleep(0)
    assert taken < 8_192
    received = 0
    while received < 16_384 * 4096:
        received += len(await client.reader.read(1 << 20))
    assert taken == 16_384


@pytest.mark.parametrize(("parts", "length"), [([b"abc"], 4), ([b"abc"], 2), ([b"x" * 100_000, b"y"], 5)])
async def test_a_wrong_length_breaks_the_connection_off(
    serve: Any, parts: list[bytes], length: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, parts=parts, length=length)

    client = await (await serve(handler)).dial()
    client.send(GET)
    with caplog.at_level(logging.ERROR), pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await client.answer()
    assert "answer broken off" in caplog.text


async def test_a_stream_is_chunked_and_the_connection_goes_on(serve: Any) -> None:
    async def stream(writer: BodyWriter) -> None:
        writer.write(b"one ")
        writer.write(b"")
        writer.write(b"two ")
        await asyncio.sleep(0)
        writer.write(b"three")
        await writer.drain()

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    client = await (await serve(handler)).dial()
    for _ in range(2):
        client.send(GET)
        head, body = await client.answer()
        assert b"Transfer-Encoding: chunked\r\n" in head and b"Content-Length" not in head
        assert body == b"one two three"


async def test_a_stream_that_never_waits(serve: Any) -> None:
    async def stream(writer: BodyWriter) -> None:
        writer.write(b"all")

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    client = await (await serve(handler)).dial()
    client.send(GET + GET)
    assert [(await client.answer())[1] for _ in range(2)] == [b"all", b"all"]


async def test_the_head_of_a_silent_stream_is_sent_at_once(serve: Any) -> None:
    release = asyncio.Event()

    async def stream(_: BodyWriter) -> None:
        await release.wait()

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    client = await (await serve(handler)).dial()
    client.send(GET)
    assert (await client.head()).startswith(b"HTTP/1.1 200 OK")
    release.set()
    assert await client.reader.readexactly(5) == b"0\r\n\r\n"


async def test_a_stream_to_http_1_0_ends_with_the_connection(serve: Any) -> None:
    async def stream(writer: BodyWriter) -> None:
        writer.write(b"plain")

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    answer = await (await serve(handler)).exchange(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nplain") and b"chunked" not in answer and b"Connection" not in answer


async def test_a_failing_stream_has_no_last_chunk(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def stream(writer: BodyWriter) -> None:
        writer.write(b"some")
        raise RuntimeError("torn")

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    with caplog.at_level(logging.ERROR):
        answer = await (await serve(handler)).exchange(GET)
    assert answer.endswith(b"4\r\nsome\r\n")
    assert "torn" in caplog.text


async def test_drain_waits_for_a_slow_reader_and_buffering_is_bounded(serve: Any) -> None:
    written = 0
    highest = 0
    finished = asyncio.get_running_loop().create_future()

    async def stream(writer: BodyWriter) -> None:
        nonlocal written, highest
        try:
            while True:
                writer.write(b"x" * 32_768)
                written += 32_768
                await writer.drain()
                highest = max(highest, writer.buffered)
                await asyncio.sleep(0)
        except (ClientDisconnected, asyncio.CancelledError):
            writer.write(b"ignored")
            finished.set_result(writer.closed)
            raise

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    client = await (await serve(handler)).dial()
    client.send(GET)
    await client.head()
    previous = -1
    while written != previous:
        previous = written
        for _ in range(500):
            await asyncio.sleep(0)
    assert highest < 1 << 20
    await client.close()
    assert await finished is True


@pytest.mark.parametrize(
    ("version", "framed", "end"), [(b"1.1", b"3\r\none\r\n3\r\ntwo\r\n", b"0\r\n\r\n"), (b"1.0", b"onetwo", b"")]
)
@pytest.mark.parametrize("directly_first", [True, False])
async def test_frames_leave_in_order_behind_the_head(
    serve: Any, version: bytes, framed: bytes, end: bytes, directly_first: bool
) -> None:
    async def stream(writer: BodyWriter) -> None:
        for number, word in enumerate((b"one", b"two")):
            way_out = writer.open_gate().way_out() if (number == 0) is directly_first else writer
            assert way_out is not None
            write = way_out.write_frames if isinstance(way_out, BodyWriter) else way_out.write
            write(writer.framing.frame(word))

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    answer = await (await serve(handler)).exchange(GET.replace(b"1.1\r\n", version + b"\r\nConnection: close\r\n"))
    assert answer.endswith(b"\r\n\r\n" + framed + end)


async def test_there_is_no_way_out_to_a_slow_reader_or_one_that_has_gone(serve: Any) -> None:
    slow, gone = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().create_future()

    async def stream(writer: BodyWriter) -> None:
        gate = writer.open_gate()
        while (transport := gate.way_out()) is not None:
            transport.write(b"x" * 65_536)
        slow.set_result(writer.buffered)
        try:
            await writer.drain()
        except (ClientDisconnected, asyncio.CancelledError):
            writer.write_frames(b"ignored")
            gone.set_result(gate.way_out())
            raise

    async def handler(_: Request) -> Response:
        return Response(stream=stream)

    client = await (await serve(handler)).dial()
    client.send(GET)
    await client.head()
    assert 0 < await slow < 1 << 20
    await client.close()
    assert await gone is None


@pytest.mark.parametrize("part", [b"", b"x" * 10])
def test_parts_that_take_long_to_make_leave_in_small_batches(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    """Compressed ones are hardly ever more than nothing: no batch of 60 KB would come together for long."""
    now, made, batches, turns, ends = 0.0, 0, [], [], []

    def parts() -> Iterator[bytes]:
        nonlocal now, made
        for _ in range(100):
            now, made = now + 0.0004, made + 1
            yield part

    class Outlet:
        def write(self, data: bytes) -> None: ...
        def is_closing(self) -> bool:
            return False

        def get_write_buffer_size(self) -> int:
            return 0

    monkeypatch.setattr(writing, "perf_counter", lambda: now)

    class Turns:
        call_soon = staticmethod(turns.append)

    writing.PartsSender(writing.WriteGate(Outlet()), Turns(), b"head", parts(), None, ends.append, chunked=True).run()
    while not ends:
        batches.append(made)
        turns.pop()()
    assert ends == [None]
    assert [after - before for before, after in pairwise([0, *batches])] == [3] * 33
