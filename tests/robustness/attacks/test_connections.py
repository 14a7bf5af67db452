"""Connections that say nothing, or not enough: they must not shut out those who have something to say."""

from __future__ import annotations

import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

SILENT = 3_000


@pytest.fixture
def room() -> Iterator[None]:
    """Enough descriptors for the attacker."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "half a greeting"])
@pytest.mark.usefixtures("room")
def test_silent_connections(victim: Any, said: bytes) -> None:
    with victim.attacked(f"{SILENT} connections that say {len(said)} bytes"), ExitStack() as stack:
        for _ in range(SILENT):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", victim.port), timeout=60))
            with suppress(OSError):
                connection.sendall(said)
        assert [victim.call("GET", "/readyz").status for _ in range(5)] == [200] * 5


def test_many_handshakes_at_once(victim: Any) -> None:
    """Greetings that all come in one turn of the loop, each of which costs it a millisecond and more."""
    context = victim.tls(anonymous=True)
    incoming, greeting = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, greeting, server_hostname="127.0.0.1").do_handshake()
    said = greeting.read()
    with victim.attacked("handshakes of 400 clients at once"), ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", victim.port), timeout=60)) for _ in range(400)
        ]
        for connection in connections:
            with suppress(OSError):
                connection.sendall(said)
        assert victim.call("GET", "/readyz").status == 200


@pytest.mark.usefixtures("room")
def test_more_connections_than_descriptors(launch: Any, tmp_path: Any) -> None:
    """A server with few descriptors gives up strangers for those who come."""
    server = launch(tmp_path / "data")
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (160, 160))
    context = server.tls()
    anonymous = ssl.create_default_context()
    anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
    with ExitStack() as stack:
        for number in range(400):
            with suppress(OSError):
                plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
                if number % 4 == 0:
                    stack.enter_context(anonymous.wrap_socket(plain))
        plain = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60))
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as known:
            known.sendall(b"GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n\r\n")
            assert known.recv(15) == b"HTTP/1.1 200 OK"
