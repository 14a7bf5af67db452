"""Measures the way of a GET through the whole server, without sockets and TLS: ``request_path.py [FLAGS]``.

Bytes of a request go into a connection, those of the answer come out, all in this process: the thread's own CPU time
is counted, in the best of many batches, so that other processes matter little. Flags are those of the server;
``--enable-priority-and-fairness=false`` shows what flow control costs.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvloop

from pilothouse.net.server import HttpServer
from pilothouse.testing.in_process import InProcessServer

BATCHES, ROUNDS = 30, 400
TOKENS = 'exempt-token,admin,u1,"system:masters"\nqueued-token,ann,u2,"devs"\n'
RBAC = "rbac.authorization.k8s.io"
GRANT = {
    "metadata": {"name": "ann"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "ann"}],
}
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/namespaces", {"metadata": {"name": "bench"}}),
    ("/api/v1/namespaces/bench/configmaps", {"metadata": {"name": "x"}, "data": {"key": "value"}}),
    (f"/apis/{RBAC}/v1/clusterrolebindings", GRANT),
]


class Sink(asyncio.Transport):
    """Takes answers."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.answer: bytes = b""
        self.answered = asyncio.Event()

    def write(self, data: Any) -> None:
        self.answer = data
        self.answered.set()

    def close(self) -> None:
        self.answered.set()

    abort = close

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


def ask(server: HttpServer, protocol: Any, request: bytes) -> None:
    """Let a request arrive."""
    server.read_buffer[: len(request)] = request
    protocol.buffer_updated(len(request))


async def measure(server: HttpServer, token: str, path: str) -> float:
    """Microseconds a request."""
    sink, protocol = Sink(), server.protocol()
    protocol.connection_made(sink)
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    ask(server, protocol, request)
    await sink.answered.wait()
    if b" 200 " not in sink.answer[:16]:
        protocol.connection_lost(None)
        raise SystemExit(sink.answer.decode())
    best = float("inf")
    for _ in range(BATCHES):
        started = time.thread_time()
        for _ in range(ROUNDS):
            ask(server, protocol, request)
        best = min(best, time.thread_time() - started)
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return best / ROUNDS * 1e6


async def main(flags: list[str]) -> None:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(TOKENS)
        async with InProcessServer("--controllers=-*", f"--token-auth-file={tokens}", *flags) as running:
            for path, body in OBJECTS:
                await running.request("POST", path, body, {"Authorization": "Bearer exempt-token"})
            for who in ("exempt", "queued"):
                server = running.process.serving.http
                micros = await measure(server, f"{who}-token", "/api/v1/namespaces/bench/configmaps/x")
                print(f"GET of a config map, {who:8}{micros:8.1f} µs", flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1:]))
