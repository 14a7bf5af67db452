"""Names that clients invent, counted without end."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def scrape(victim: Any) -> bytes:
    answer = victim.call("GET", "/metrics")
    assert answer.status == 200
    return bytes(answer.body)


def send(victim: Any, requests: bytes, count: int) -> None:
    """Send requests on one connection, anonymously, and read so many answers."""
    with (
        socket.create_connection(("127.0.0.1", victim.port), timeout=120) as plain,
        victim.contexts[True].wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(requests)
        seen, rest = 0, b""
        while seen < count and (piece := connection.recv(65536)):
            rest += piece
            seen += rest.count(b"HTTP/1.1 ")
            rest = rest[-8:]
        assert seen >= count


@pytest.mark.parametrize("path", [b"/api/v1/pods", b"/apis/%d.example/v%d/kind%d/x", b"/%d"], ids=str)
def test_invented_methods_and_paths(victim: Any, path: bytes) -> None:
    before = len(scrape(victim))
    with victim.attacked(f"invented methods of {path.decode()}"):
        for start in range(0, 4000, 400):
            requests = b"".join(
                b"M%d %b HTTP/1.1\r\nHost: x\r\n\r\n" % (number, path.replace(b"%d", b"%d" % number))
                for number in range(start, start + 400)
            )
            send(victim, requests, 400)
    assert len(scrape(victim)) < before + 100_000


def test_long_methods(victim: Any) -> None:
    before = len(scrape(victim))
    with victim.attacked("methods of 400 KB"):
        for letter in "ABCDEFGHIJKLMNOPQRST":
            send(victim, letter.encode() * 400_000 + b" / HTTP/1.1\r\nHost: x\r\n\r\n", 1)
    assert len(scrape(victim)) < before + 100_000
