"""Two sessions over one connection: opening, half-closing, resetting, holding up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from pilothouse.net.messages import ClientDisconnected
from pilothouse.net.spdy import SpdySession, SpdyStream, StreamReset
from pilothouse.net.spdy.session import HIGH_WATER, MOST_HEADERS

Pair = tuple[SpdySession, "asyncio.Queue[SpdyStream]", SpdySession]


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    loop, opened = asyncio.get_running_loop(), asyncio.Queue[SpdyStream]()
    made: asyncio.Queue[SpdySession] = asyncio.Queue()

    def serve() -> SpdySession:
        session = SpdySession(is_server=True, on_stream=opened.put_nowait)
        made.put_nowait(session)
        return session

    listening = await loop.create_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    _, client = await loop.create_connection(lambda: SpdySession(is_server=False), "127.0.0.1", port)
    server = await made.get()
    yield client, opened, server
    client.close()
    server.close()
    listening.close()
    await listening.wait_closed()


async def test_half_closing(pair: Pair) -> None:
    client, opened, _ = pair
    here = await client.open({"streamType": "data"})
    there = await opened.get()
    assert there.header("streamtype") == "data"
    here.write(b"question")
    here.close()
    assert await there.read() == b"question"
    assert await there.read() == b""
    there.write(b"answer" * 50_000)
    there.close()
    assert await here.read_all(1 << 20) == b"answer" * 50_000


async def test_resets_and_ends(pair: Pair) -> None:
    client, opened, server = pair
    first, second = await client.open({}), await client.open({})
    (await opened.get()).reset()
    with pytest.raises(StreamReset):
        await first.read()
    server.transport.abort()
    with pytest.raises(StreamReset):
        await second.read()
    with pytest.raises(StreamReset):
        await client.open({})


async def test_what_came_before_a_reset_is_read(pair: Pair) -> None:
    """Kubelets reset all streams at the end of a command, right behind its last words."""
    client, opened, _ = pair
    first, second, third = [await client.open({}) for _ in range(3)]
    for number in range(2):
        there = await opened.get()
        there.write(b"words of %d" % number)
        there.reset()
    (await opened.get()).reset()
    with pytest.raises(StreamReset):  # the last: by now all has come
        await third.read_all(100)
    assert await first.read_all(100) == b"words of 0"
    assert await second.read() == b"words of 1"
    with pytest.raises(StreamReset):
        await second.read()
    assert client._held == 0


async def test_a_stream_that_nobody_reads_holds_up_the_connection(pair: Pair) -> None:
    client, opened, server = pair
    here = await client.open({})
    there = await opened.get()

    async def flood() -> None:
        while True:
            here.write(b"x" * 65536)
            await here.drain()

    flooding = asyncio.ensure_future(flood())
    while not (server._input.paused and client._gate.paused):
        await asyncio.sleep(0.01)
    assert there._size < 2 << 20
    flooding.cancel()


async def test_streams_of_the_other_sides_numbers_are_refused(pair: Pair) -> None:
    client, opened, _ = pair
    client.send(client._writer.syn_stream(2, {}))
    await client.open({})
    assert (await opened.get()).id == 1
    assert opened.empty()


async def test_nonsense_ends_the_connection(pair: Pair) -> None:
    client, _, server = pair
    client.send(b"\x80\x07nonsense")
    while not client.lost:
        await asyncio.sleep(0.01)
    assert server.transport.is_closing()


async def test_pieces_that_nobody_reads_count_with_what_they_take(pair: Pair) -> None:
    client, opened, server = pair
    streams = [await client.open({}) for _ in range(20)]
    for stream in streams:
        for _ in range(1000):
            stream.write(b"x")
        await stream.drain()
    theirs = [await opened.get() for _ in streams]
    while not server._input.paused:
        await asyncio.sleep(0.01)
    assert sum(len(each._pieces) for each in theirs) * 100 <= HIGH_WATER
    for stream in streams:
        stream.close()
    assert await asyncio.gather(*(each.read_all(2000) for each in theirs)) == [b"x" * 1000] * len(theirs)


async def test_headers_of_all_streams_are_bounded(pair: Pair) -> None:
    client, opened, server = pair
    with pytest.raises(StreamReset):
        for _ in range(100):
            await client.open({"a": "x" * 8000})
    assert opened.qsize() == MOST_HEADERS // 8200
    while not opened.empty():
        (await opened.get()).reset()
    await client.open({"a": "x" * 8000})
    assert len(server._streams) == 1


async def test_who_reads_no_answers_is_hung_up_on(pair: Pair) -> None:
    client, _, server = pair
    client.transport.pause_reading()

    async def ask() -> None:
        with suppress(ClientDisconnected):
            while True:
                client.send(client._writer.ping(1) * 1000)
                await client._gate.wait()
                await asyncio.sleep(0)

    asking = asyncio.ensure_future(ask())
    while not server.lost:
        assert server.transport.get_write_buffer_size() < 1 << 20
        await asyncio.sleep(0.01)
    asking.cancel()
