"""Exec over WebSocket, channel by channel: what kubectl does not show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.kubelet import Process, StandInKubelet

EXEC = "/api/v1/namespaces/default/pods/p/exec?command=x"
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"


class Place:
    """A server with one pod on a kubelet."""

    def __init__(self, server: InProcessServer, kubelet: StandInKubelet, session: aiohttp.ClientSession) -> None:
        self.server, self.kubelet, self.session = server, kubelet, session

    async def connect(self, query: str, *protocols: str) -> aiohttp.ClientWebSocketResponse:
        url = f"{self.server.url}{EXEC}{query}"
        return await self.session.ws_connect(url, protocols=protocols, ssl=self.server.ssl_context())


@asynccontextmanager
async def make_place(*flags: str) -> AsyncIterator[Place]:
    flags = ("--disable-admission-plugins=ServiceAccount", *flags)
    async with StandInKubelet() as kubelet, InProcessServer(*flags) as server, aiohttp.ClientSession() as session:
        await server.request("POST", "/api/v1/nodes", kubelet.node("n"))
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        pod = {"metadata": {"name": "p"}, "spec": spec}
        assert (await server.request("POST", "/api/v1/namespaces/default/pods", pod)).status == 201
        yield Place(server, kubelet, session)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with make_place() as made:
        yield made


async def received(socket: aiohttp.ClientWebSocketResponse) -> tuple[bytes, dict[str, Any]]:
    """The output, and the Status at the end."""
    out = b""
    async with asyncio.timeout(120):
        async for message in socket:
            data = message.data
            if data[0] == 3:
                return out, dict(orjson.loads(data[1:]))
            out += data[1:]
    raise AssertionError("no status came")


async def test_terminals_are_resized(place: Place) -> None:
    async def show_sizes(process: Process) -> int:
        for _ in range(2):
            await process.stdout(await process.resize())
        return 0

    place.kubelet.command = show_sizes
    socket = await place.connect("&stdin=1&stdout=1&tty=1", V5)
    assert socket.protocol == V5
    for width in (80, 100):
        await socket.send_bytes(b'\4{"Width":%d,"Height":24}' % width)
    out, status = await received(socket)
    assert out == b'{"Width":80,"Height":24}{"Width":100,"Height":24}'
    assert status == {"metadata": {}, "status": "Success"}
    assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
    await socket.close()


async def test_input_may_end_before_output(place: Place) -> None:
    async def count(process: Process) -> int:
        size = 0
        while piece := await process.stdin():
            size += len(piece)
        await process.stdout(b"%d" % size)
        return 3

    place.kubelet.command = count
    socket = await place.connect("&stdin=1&stdout=1", V5, V4)
    await socket.send_bytes(b"\0" + b"x" * 100_000)
    await socket.send_bytes(b"\0y")
    await socket.send_bytes(b"\xff\0")
    out, status = await received(socket)
    assert out == b"100001"
    assert (status["reason"], status["details"]) == (
        "NonZeroExitCode",
        {"causes": [{"reason": "ExitCode", "message": "3"}]},
    )
    await socket.close()


async def test_a_client_that_leaves_ends_the_command(place: Place) -> None:
    ended = asyncio.Event()

    async def wait(process: Process) -> int:
        await process.stdout(b"started")
        try:
            await process.stdin()
        finally:
            ended.set()
        return 0

    place.kubelet.command = wait
    socket = await place.connect("&stdin=1&stdout=1", V5)
    while (await socket.receive()).data != b"\1started":
        pass
    await socket.close()
    async with asyncio.timeout(120):
        await ended.wait()


@pytest.mark.parametrize("signal", [b"\xff", b"\xff\x09", b"\xff\0\0"])
async def test_nonsense_ends_the_connection(place: Place, signal: bytes) -> None:
    async def wait(process: Process) -> int:
        await process.stdin()
        return 0

    place.kubelet.command = wait
    socket = await place.connect("&stdin=1&stdout=1", V5)
    await socket.send_bytes(signal)
    async with asyncio.timeout(120):
        while not socket.closed:
            await socket.receive()


async def test_older_protocols_are_the_kubelets(place: Place) -> None:
    async def greet(process: Process) -> int:
        await process.stdout(b"hello")
        return 0

    place.kubelet.command = greet
    socket = await place.connect("&stdout=1", V4)
    assert socket.protocol == V4
    assert await received(socket) == (b"hello", {"metadata": {}, "status": "Success"})
    assert place.kubelet.requests[-1][2][b"upgrade"] == b"websocket"
    await socket.close()


async def test_a_kubelet_that_refuses_is_told_on_the_error_channel(place: Place) -> None:
    async def refuse(request: Any) -> Any:
        from pilothouse.net.messages import Response

        return Response(403, b"go away", b"text/plain")

    place.kubelet._server._http.handler = refuse
    socket = await place.connect("&stdout=1", V5)
    _, status = await received(socket)
    assert (status["code"], status["message"]) == (
        500,
        "Internal error occurred: unable to upgrade connection: go away",
    )
    await socket.close()


async def test_streams_are_held_to_their_rate() -> None:
    async def write(process: Process) -> int:
        await process.stdout(b"x" * 60_000)
        return 0

    async with make_place("--max-connection-bytes-per-sec=100000") as place:
        place.kubelet.command = write
        for protocol in (V5, V4):  # translated, and passed on
            begin = asyncio.get_running_loop().time()
            socket = await place.connect("&stdout=1", protocol)
            out, status = await received(socket)
            assert (len(out), status["status"]) == (60_000, "Success")
            assert asyncio.get_running_loop().time() - begin >= 0.45  # 60,000 bytes less what a tenth of a second saves
            await socket.close()


@pytest.mark.parametrize("protocol", [V5, V4])
async def test_a_kubelet_that_hangs_up_ends_idle_streams(protocol: str) -> None:
    """As it does after its ``--streaming-connection-idle-timeout``."""
    began = asyncio.Event()

    async def wait(process: Process) -> int:
        began.set()
        await asyncio.Event().wait()
        return 0

    flags = "--disable-admission-plugins=ServiceAccount"
    async with InProcessServer(flags) as server, aiohttp.ClientSession() as session:
        async with StandInKubelet(command=wait) as kubelet:
            await server.request("POST", "/api/v1/nodes", kubelet.node("n"))
            spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
            await server.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
            socket = await Place(server, kubelet, session).connect("&stdin=1&stdout=1", protocol)
            async with asyncio.timeout(120):
                await began.wait()
        async with asyncio.timeout(120):
            said = [message.data async for message in socket]
        assert socket.closed
        if protocol == V5:
            status = orjson.loads(said[-1][1:])
            assert (status["status"], status["message"]) == ("Failure", "Internal error occurred: connection closed")
