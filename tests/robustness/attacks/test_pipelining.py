"""Requests without end on one connection, and nobody who reads the answers."""

from __future__ import annotations

import os
import select
import socket
import ssl
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

MEGABYTE = 1024 * 1024


def push(connection: ssl.SSLSocket, data: bytes) -> None:
    """Send until the server takes no more for half a second."""
    connection.setblocking(False)
    while data:
        try:
            data = data[connection.send(data[:16384]) :]
        except ssl.SSLWantWriteError:
            if not select.select([], [connection], [], 0.5)[1]:
                return


def let_it_work(victim: Any, figures: Any) -> None:
    """Wait until the server has done what it is willing to do: it then hardly works but for the second client."""
    used, visits, quiet = processor_time(victim), len(figures.visits), 0
    for _ in range(600):
        time.sleep(0.1)
        before, used = used, processor_time(victim)
        seen, visits = visits, len(figures.visits)
        own = (visits - seen) * victim.quiet_wait() * figures.slowness
        quiet = quiet + 1 if used - before <= 0.02 + own else 0
        if quiet == 5:
            return


def processor_time(victim: Any) -> float:
    fields = Path(f"/proc/{victim.server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connect(victim: Any, stack: ExitStack, *, anonymous: bool) -> ssl.SSLSocket:
    plain = stack.enter_context(socket.create_connection(("127.0.0.1", victim.port), timeout=120))
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    context: ssl.SSLContext = victim.tls(anonymous=anonymous)
    return stack.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))


@pytest.mark.parametrize(
    ("what", "connections", "count", "anonymous"),
    [("/openapi/v2", 1, 1_200, False), ("/openapi/v2", 10, 1_200, False), ("/api/v1/secrets", 10, 10_000, True)],
)
def test_answers_that_nobody_reads(victim: Any, what: str, connections: int, count: int, anonymous: bool) -> None:
    assert victim.call("GET", "/openapi/v2").status == 200  # made once, for all
    requests = f"GET {what} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * count
    attack = victim.attacked(f"{connections} x {count} pipelined {what}", allowance=14 * MEGABYTE)
    with attack as figures, ExitStack() as stack:
        for _ in range(connections):
            push(connect(victim, stack, anonymous=anonymous), requests)
        let_it_work(victim, figures)
