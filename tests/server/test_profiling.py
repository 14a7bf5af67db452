"""Looking inside a running server: profiles, memory, threads, verbosity."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilothouse.machinery.verbosity import set_verbosity
from pilothouse.testing.in_process import InProcessServer


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        yield server
    set_verbosity(0)


def test_profiles(server: InProcessServer) -> None:
    profile = server.call("GET", "/debug/pprof/profile?seconds=1")
    assert profile.headers["content-type"] == "application/octet-stream"
    assert b"nanoseconds" in gzip.decompress(profile.body)
    assert b"builtins.dict" in server.call("GET", "/debug/pprof/heap").body
    assert b"thread " in server.call("GET", "/debug/pprof/goroutine?debug=2").body
    assert server.call("GET", "/debug/pprof/").body.startswith(b"profile ")
    assert server.call("GET", "/debug/pprof/nothing").status == 404


def test_verbosity(server: InProcessServer) -> None:
    answer = server.call("PUT", "/debug/flags/v", b"4")
    assert (answer.status, answer.body) == (200, b"successfully set klog.logging.verbosity to 4\n")
    assert logging.getLogger("pilothouse").level == logging.DEBUG
    assert server.call("PUT", "/debug/flags/v", b"0").status == 200
    assert logging.getLogger("pilothouse").level == logging.INFO
    wrong = server.call("PUT", "/debug/flags/v", b"much")
    assert (wrong.status, wrong.body) == (400, b'strconv.ParseUint: parsing "much": invalid syntax\n')
    assert server.call("GET", "/debug/flags/v").status == 406
    assert b"<tr>v<br>" in server.call("GET", "/debug/flags").body


def test_switched_off() -> None:
    with InProcessServer("--profiling=false") as server:
        assert server.call("GET", "/debug/pprof/heap").status == 404


async def test_what_holds_the_loop() -> None:
    """A hold is made by hand, in the loop of the server."""

    def hold() -> None:
        deadline = time.thread_time() + 0.3
        while time.thread_time() < deadline:
            pass

    async with InProcessServer("--contention-profiling") as server:

        async def profile() -> bytes:
            return gzip.decompress((await asyncio.to_thread(server.call, "GET", "/debug/pprof/block")).body)

        while b"test_what_holds_the_loop.<locals>.hold" not in await profile():
            hold()
        assert b"contentions" in await profile()


def ask_socket(path: Path, request: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(request)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_a_socket_without_login(tmp_path: Path) -> None:
    path = tmp_path / "debug.sock"
    path.touch()
    with InProcessServer(f"--debug-socket-path={path}", "--profiling=false") as server:
        assert server.call("GET", "/debug/pprof/heap").status == 404
        assert path.stat().st_mode & 0o777 == 0o600
        head = b"HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        assert b"thread " in ask_socket(path, b"GET /debug/pprof/goroutine " + head + b"\r\n")
        told = ask_socket(path, b"PUT /debug/flags/v " + head + b"Content-Length: 1\r\n\r\n4")
        assert told.endswith(b"successfully set klog.logging.verbosity to 4\n")
        assert ask_socket(path, b"GET /api " + head + b"\r\n").startswith(b"HTTP/1.1 404 ")
    assert not path.exists()
