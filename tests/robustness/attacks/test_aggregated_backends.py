"""Servers behind the server that never come to an end: their heads, their answers, and those who wait for them."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.robustness.attacks.conftest import MANY_WAITS

from pilothouse.credentials.pki import Pki
from pilothouse.testing.aggregated_servers import API_SERVICES, SERVICES, api_service, loopback_service

GROUP = "slow.example.com"
BASE = f"/apis/{GROUP}/v1"
SECONDS = 120.0
CROWD = 60
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
EVENT = b'{"type":"ADDED"}\n'


@contextmanager
def closing_at_once(writer: asyncio.StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.transport.abort()


class Backend:
    """Well when the server itself asks, and otherwise what the path says. Lives in a thread of its own."""

    def __init__(self, pki: Pki) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pki.serving_cert, pki.serving_key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.waiting = 0
        self._release = asyncio.Event()
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]

    def begin(self) -> None:
        """Nobody waits, and whoever comes will have to."""
        self.waiting = 0
        self._loop.call_soon_threadsafe(self._release.clear)

    def release(self) -> None:
        """Let go on who waits."""
        self._loop.call_soon_threadsafe(self._release.set)

    def stop(self) -> None:
        self.release()
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context, backlog=512)

    async def _close(self) -> None:
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._server.wait_closed()
        for _ in range(10):  # turns of the loop, in which connections that were given up are closed
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing_at_once(writer), suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].partition(b"?")[0].rpartition(b"/")[2]
                act = _ACTS.get(path) if b"X-Remote-User: system:" not in head else None
                if act is None:
                    writer.write(OK)
                else:
                    await act(self, writer)

    async def trickle(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-A: ")
        self.waiting += 1
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.001)

    async def pour(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        number = 0
        while True:
            number += 1
            writer.write(b"X-%d: %b\r\n" % (number, b"a" * 50))
            await writer.drain()
            await asyncio.sleep(0)

    async def interim(self, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 10)
            await writer.drain()
            await asyncio.sleep(0)

    async def wait(self, writer: asyncio.StreamWriter) -> None:
        self.waiting += 1
        await self._release.wait()
        writer.write(OK)

    async def watch(self, writer: asyncio.StreamWriter) -> None:
        chunk = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
        self.waiting += 1
        await self._release.wait()
        writer.write(chunk + b"0\r\n\r\n")


_ACTS: dict[bytes, Callable[[Backend, asyncio.StreamWriter], Awaitable[None]]] = {
    b"trickle": Backend.trickle,
    b"pour": Backend.pour,
    b"interim": Backend.interim,
    b"wait": Backend.wait,
    b"events": Backend.watch,
}


@pytest.fixture(scope="module")
def registered(victim: Any) -> Iterator[Backend]:
    made = Backend(Pki(victim.server.data / "pki"))
    made.start()
    assert victim.call("POST", SERVICES, loopback_service("slow", made.port)).status == 201
    assert victim.call("POST", API_SERVICES, api_service(GROUP, "v1", "slow", made.port)).status == 201
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def backend(victim: Any, registered: Backend) -> Backend:
    registered.begin()
    until(lambda: victim.call("GET", f"{BASE}/things").status == 200)
    return registered


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_head_that_trickles_for_ever(victim: Any, backend: Backend) -> None:
    with victim.attacked("a backend whose head trickles"):
        answers = on_threads(lambda: victim.call("GET", f"{BASE}/trickle?timeout=3s"), 20)
    assert backend.waiting == 20
    assert [answer.status for answer in answers] == [504] * 20
    assert {answer.json["reason"] for answer in answers} == {"Timeout"}
    assert victim.call("GET", f"{BASE}/things").status == 200


@pytest.mark.parametrize("kind", ["pour", "interim"])
def test_a_head_without_end(victim: Any, backend: Backend, kind: str) -> None:
    with victim.attacked(f"a backend whose head has no end: {kind}"):
        answers = on_threads(lambda: victim.call("GET", f"{BASE}/{kind}"), 2)
    assert [answer.status for answer in answers] == [503] * 2
    assert all(b"server response headers exceeded 1048576 bytes" in answer.body for answer in answers)


@pytest.mark.parametrize(("path", "answer"), [("wait", b"{}"), ("events", EVENT * 2)])
def test_many_who_wait(victim: Any, backend: Backend, path: str, answer: bytes) -> None:
    """They take nobody's place, and each gets its answer in the end."""

    async def ask(gate: asyncio.Semaphore) -> bytes:
        async with gate:  # handshakes one after the other: they are not what is tried here
            reader, writer = await asyncio.open_connection("127.0.0.1", victim.port, ssl=victim.contexts[False])
        query = "?watch=true" if path == "events" else ""
        writer.write(f"GET {BASE}/{path}{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        with closing_at_once(writer):
            return await reader.read()

    async def ask_all() -> list[bytes]:
        gate = asyncio.Semaphore(2)
        asking = [asyncio.create_task(ask(gate)) for _ in range(CROWD)]
        while backend.waiting < CROWD:
            await asyncio.sleep(0.05)
        begun.set()
        await asyncio.to_thread(finish.wait, SECONDS)
        backend.release()
        return await asyncio.gather(*asking)

    begun, finish = threading.Event(), threading.Event()
    results: list[list[bytes]] = []
    crowd = threading.Thread(target=lambda: results.append(asyncio.run(ask_all())))
    crowd.start()
    try:
        assert begun.wait(SECONDS)
        with victim.attacked(f"{CROWD} who wait for a backend: {path}") as figures:
            until(lambda: len(figures.spent) >= MANY_WAITS)
    finally:
        finish.set()
        crowd.join()
    assert len(results[0]) == CROWD
    for got in results[0]:
        head, _, body = got.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert unchunked(body) == answer if b"chunked" in head else body == answer


def unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole, body = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return whole


def on_threads(call: Callable[[], Any], count: int) -> list[Any]:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
