import asyncio
import contextlib
from typing import Any, ClassVar

import pytest

from pilothouse.net.messages import Connection, CrowdedOut, Request, Response
from pilothouse.net.request_body import RequestBody
from pilothouse.net.request_head import HeaderBlock, RequestLine
from pilothouse.net.server import A_SWEEP, CANCELLED_A_TURN, Limits

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(_: Request) -> Response:
    return Response(200, b"hello")


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


async def test_requests_are_of_the_type_asked_for(serve: Any) -> None:
    class Richer(Request):
        __slots__ = ("user",)

        def __init__(
            self, connection: Connection, line: RequestLine, headers: HeaderBlock, keep: bool, body: RequestBody | None
        ) -> None:
            super().__init__(connection, line, headers, keep, body)
            self.user = "nobody"

    async def handler(request: Richer) -> Response:
        return Response(200, request.user.encode())

    client = await (await serve(handler, request_type=Richer)).dial()
    client.send(GET)
    assert (await client.answer())[1] == b"nobody"


@pytest.mark.parametrize("translated", [True, False])
async def test_a_deadline_cancels_the_handler(serve: Any, translated: bool) -> None:
    async def handler(request: Request) -> Response:
        request.deadline = asyncio.get_running_loop().time()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if translated and request.timed_out:
                return Response(504, b"translated")
            raise
        return Response()

    client = await (await serve(handler)).dial()
    client.send(GET)
    head, body = await client.answer()
    assert head.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    assert (body == b"translated") is translated
    assert (b"Connection: close" in head) is not translated


async def test_a_deadline_in_the_future_does_nothing_yet(serve: Any) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        request.deadline = asyncio.get_running_loop().time() + 3600
        await gate.wait()
        return Response(200, b"in time")

    running = await serve(handler)
    client = await running.dial()
    client.send(GET)
    await until(lambda: running.server.waiting)
    running.server.sweep()
    gate.set()
    assert (await client.answer())[1] == b"in time"


async def test_who_is_silent_for_a_while_is_parked(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response(200)

    parked: list[Any] = []
    running = await serve(handler, limits=Limits(sweep_interval=3600))
    client = await running.dial()
    client.send(GET)
    await until(lambda: running.server.waiting)
    monkeypatch.setattr(running.server.parking, "take", parked.append)
    running.server.sweep()
    assert parked == []
    for protocol in running.server.connections:
        protocol._since -= 2.0
    running.server.sweep()
    assert len(parked) == 1


async def test_of_very_many_the_deadlines_are_looked_at_in_turns(serve: Any) -> None:
    class Waiting:
        """An exchange and its handler, whose time is over."""

        timed_out: ClassVar[list[Any]] = []

        def deadline(self, handler: Any) -> float:
            return 0.0

        def time_out(self, handler: Any) -> None:
            self.timed_out.append(handler)

    running = await serve(hello, limits=Limits(sweep_interval=3600))
    waiting: list[Any] = [Waiting() for _ in range(3 * A_SWEEP)]
    running.server.waiting.update(zip(waiting, waiting, strict=True))
    running.server.sweep()
    seen = [len(Waiting.timed_out)]
    while len(Waiting.timed_out) < len(waiting):
        await asyncio.sleep(0)
        seen.append(len(Waiting.timed_out))
    running.server.waiting.clear()
    assert seen == [A_SWEEP, 2 * A_SWEEP, 3 * A_SWEEP]
    assert Waiting.timed_out == waiting


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA:", GET])
async def test_idle_and_slow_clients_are_dropped(serve: Any, sent: bytes) -> None:
    running = await serve(hello, limits=Limits(idle_timeout=-1, header_timeout=-1, sweep_interval=3600))
    client = await running.dial()
    client.send(sent)
    await until(lambda: running.server.connections)
    if sent == GET:
        await client.answer()
    running.server.sweep()
    with pytest.raises(ConnectionResetError):
        assert await client.rest() == b""
        raise ConnectionResetError


async def test_a_waiting_handler_is_not_idle(serve: Any) -> None:
    gate = asyncio.Event()

    async def handler(_: Request) -> Response:
        await gate.wait()
        return Response(200, b"ok")

    running = await serve(handler, limits=Limits(idle_timeout=-1, header_timeout=-1, sweep_interval=3600))
    client = await running.dial()
    client.send(GET)
    await until(lambda: running.server.waiting)
    running.server.sweep()
    gate.set()
    assert (await client.answer())[1] == b"ok"


async def test_a_handler_is_started_without_its_late_body(serve: Any) -> None:
    async def handler(_: Request) -> Response:
        return Response(401, b"who?")

    running = await serve(handler, limits=Limits(body_grace=-1, sweep_interval=3600))
    client = await running.dial()
    client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    await until(lambda: any(not protocol.idle for protocol in running.server.connections))
    running.server.sweep()
    assert (await client.answer())[1] == b"who?"


async def test_strangers_make_room_for_newcomers(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        request.connection.authenticated = request.path == "/login"
        return Response(200, b"ok")

    running = await serve(handler, limits=Limits(unauthenticated_connections=2))
    known = await running.dial()
    known.send(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
    await known.answer()
    strangers = []
    for _ in range(4):
        client = await running.dial()
        client.send(GET)
        await client.answer()
        strangers.append(client)
    assert len(running.server.connections) == 3
    for client in strangers[:2]:
        assert await client.rest() == b""
    for client in (known, *strangers[2:]):
        client.send(GET)
        assert (await client.answer())[1] == b"ok"


async def test_the_oldest_goes_where_all_strangers_are_busy(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/wait":
            await asyncio.Event().wait()
        return Response(200, b"ok")

    running = await serve(handler, limits=Limits(unauthenticated_connections=2))
    busy = [await running.dial() for _ in range(2)]
    for client in busy:
        client.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    await until(lambda: len(running.server.waiting) == 2)
    newcomer = await running.dial()
    newcomer.send(GET)
    assert (await newcomer.answer())[1] == b"ok"
    with pytest.raises(ConnectionResetError):
        assert await busy[0].rest() == b""
        raise ConnectionResetError
    await until(lambda: len(running.server.waiting) == 1)


async def test_a_stranger_can_be_shed(serve: Any) -> None:
    async def handler(request: Request) -> Response:
        request.connection.authenticated = request.path == "/login"
        return Response(200, b"ok")

    running = await serve(handler)
    known, stranger = await running.dial(), await running.dial()
    known.send(b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
    stranger.send(GET)
    await known.answer()
    await stranger.answer()
    assert running.server.shed_stranger()
    assert not running.server.shed_stranger()
    known.send(GET)
    assert (await known.answer())[1] == b"ok"


async def test_draining(serve: Any) -> None:
    gate = asyncio.Event()

    async def handler(request: Request) -> Response:
        if request.path == "/wait":
            await gate.wait()
        return Response(200, b"ok")

    running = await serve(handler)
    idle, busy = await running.dial(), await running.dial()
    idle.send(GET)
    await idle.answer()
    busy.send(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    await until(lambda: running.server.waiting)
    running.server.begin_drain()
    assert await idle.rest() == b""
    assert await running.server.wait_idle(0) is False
    gate.set()
    head, body = await busy.answer()
    assert b"Connection: close\r\n" in head and body == b"ok"
    assert await busy.rest() == b""
    assert await running.server.wait_idle(None) is True


async def test_close_cancels_what_is_under_way(serve: Any) -> None:
    async def handler(_: Request) -> Response:
        await asyncio.Event().wait()
        return Response()

    running = await serve(handler)
    client = await running.dial()
    client.send(GET)
    await until(lambda: running.server.waiting)
    await running.server.close()
    assert not running.server.waiting and not running.server.connections


@pytest.mark.parametrize("reads", [True, False])
async def test_answers_that_nobody_reads_end(serve: Any, reads: bool) -> None:
    async def handler(_: Request) -> Response:
        return Response(200, b"x" * 20_000_000)

    running = await serve(handler, limits=Limits(unread_timeout=-1, sweep_interval=3600))
    client = await running.dial()
    client.send(GET)
    await client.head()
    (protocol,) = running.server.connections
    await until(lambda: protocol._gate.paused)
    if reads:
        assert len(await client.reader.readexactly(20_000_000)) == 20_000_000
        await until(lambda: not protocol._gate.paused)
    running.server.sweep()
    await until(lambda: reads or not running.server.connections)
    assert protocol.transport.is_closing() != reads


async def test_input_that_does_not_end_gives_way(serve: Any) -> None:
    """The head that was begun first goes; a body that was is answered by its handler."""

    async def handler(request: Request) -> Response:
        try:
            return Response(200, b"%d" % len(await request.body()))
        except CrowdedOut:
            return Response(429)

    running = await serve(handler, limits=Limits(held_input_bytes=100_000, sweep_interval=3600))
    held = running.server.held_input
    head, body, last = [await running.dial() for _ in range(3)]
    head.send(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 60_000)
    await until(lambda: held.total >= 60_000)
    body.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"b" * 60_000)
    with contextlib.suppress(ConnectionResetError):
        assert await head.rest() == b""
    await until(lambda: held.total >= 60_000)
    last.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n" + b"b" * 60_000)
    assert (await body.head()).startswith(b"HTTP/1.1 429 ")
    last.send(b"b" * 30_000)
    assert (await last.answer())[1] == b"90000"
    assert held.total == 0


async def test_handlers_of_clients_that_leave_at_once_end_in_several_turns(serve: Any) -> None:
    ended: list[int] = []

    async def handler(_: Request) -> Response:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)
        return Response()

    running = await serve(handler)
    clients = [await running.dial() for _ in range(3 * CANCELLED_A_TURN)]
    for client in clients:
        client.send(GET)
    await until(lambda: len(running.server.waiting) == len(clients))
    for protocol in list(running.server.connections):
        protocol.connection_lost(None)
    in_turns = []
    while running.server.waiting:
        before = len(ended)
        await asyncio.sleep(0)
        in_turns.append(len(ended) - before)
    assert max(in_turns) <= CANCELLED_A_TURN
    assert sum(in_turns) == len(clients)
