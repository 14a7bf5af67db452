"""Measures the way of requests through the whole server, without sockets and TLS.

    request_path.py [--only PART OF A NAME] [--opcodes] [FLAGS OF THE SERVER]

Bytes of a request go into a connection, those of the answer come out, all in this process, so that its own CPU time can
be counted, in the best of many batches: other processes matter little. Reads are served one after the other and counted
by the thread's time; writes sixteen at a time and by the process's, because the store writes in a thread of its own.
``--opcodes`` counts what the interpreter executes instead, which is nearly the same each time, however busy the machine
is: it shows what a change of a few per cent brings. Calls into C count as one, so compare like with like.
Other flags are those of the server; ``--enable-priority-and-fairness=false`` shows what flow control costs.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import uvloop
from load import CONFIGMAP, CRD, POD, WIDGET  # the same objects as over the network

from pilothouse.net.server import HttpServer
from pilothouse.process.garbage import THRESHOLDS
from pilothouse.testing.in_process import InProcessServer

BATCHES, ROUNDS = 30, 400
WRITE_BATCHES, WRITES, CLIENTS = 30, 128, 16
TOKENS = 'exempt-token,admin,u1,"system:masters"\nqueued-token,ann,u2,"devs"\n'
RBAC = "rbac.authorization.k8s.io"
GRANT = {
    "metadata": {"name": "ann"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"},
    "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "ann"}],
}
NAMESPACE = "/api/v1/namespaces/bench"
WIDGETS = "/apis/bench.example.com/v1/namespaces/bench/widgets"
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/namespaces", {"metadata": {"name": "bench"}}),
    (f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "default"}}),
    (f"{NAMESPACE}/configmaps", {"metadata": {"name": "x"}, "data": {"key": "value"}}),
    (f"{NAMESPACE}/pods", {**POD, "metadata": {"name": "x"}}),
    *((f"{NAMESPACE}/pods", {**POD, "metadata": {"name": f"x{number}"}}) for number in range(2 * CLIENTS)),
    *(
        (f"{NAMESPACE}/configmaps", {"metadata": {"name": f"x{number}"}, "data": {"key": ""}})
        for number in range(2 * CLIENTS)
    ),
    (f"/apis/{RBAC}/v1/clusterrolebindings", GRANT),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD),
]


@dataclass(frozen=True, slots=True)
class Load:
    """A kind of request, and who sends it."""

    title: str
    method: str
    path: str
    body: Callable[[int], object] = field(default=lambda number: {})
    form: str = "application/json"
    who: str = "exempt"

    def bytes_of(self, number: int) -> bytes:
        """The whole request; its body and which object it is for may depend on how many came before."""
        body = json.dumps(self.body(number)).encode() if self.method != "GET" else b""
        path = self.path.replace("NUMBER", str(number % (2 * CLIENTS)))
        head = f"{self.method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.who}-token\r\n"
        if body:
            head += f"Content-Type: {self.form}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body


def _applied(number: int, value: str) -> dict[str, Any]:
    metadata = {"name": f"applied{number % (2 * CLIENTS)}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


def _changed(number: int) -> dict[str, Any]:
    return {"metadata": {"name": f"x{number % (2 * CLIENTS)}"}, "data": {"key": str(number)}}


def _pod(number: int) -> dict[str, Any]:
    return {**POD, "metadata": {"name": f"x{number % (2 * CLIENTS)}"}}


def _status(number: int) -> dict[str, Any]:
    return {"conditions": [{"type": "Bench", "status": "True", "message": str(number)}]}


APPLY = (f"{NAMESPACE}/configmaps/appliedNUMBER?fieldManager=bench&force=true", "application/apply-patch+yaml")
MERGE = (f"{NAMESPACE}/pods/xNUMBER", "application/merge-patch+json")
READS = [
    Load(f"GET of a {kind}, {who}", "GET", f"{NAMESPACE}/{plural}/x", who=who)
    for kind, plural in (("config map", "configmaps"), ("pod", "pods"))
    for who in ("exempt", "queued")
]
WRITTEN = [
    Load("create of a config map", "POST", f"{NAMESPACE}/configmaps", lambda _: CONFIGMAP),
    Load("create of a config map, queued", "POST", f"{NAMESPACE}/configmaps", lambda _: CONFIGMAP, who="queued"),
    Load("create of a pod", "POST", f"{NAMESPACE}/pods", lambda _: POD),
    Load("create of a custom resource", "POST", WIDGETS, lambda _: WIDGET),
    Load("merge patch, no change", "PATCH", MERGE[0], lambda _: {"metadata": {"annotations": {"x": "1"}}}, MERGE[1]),
    Load("merge patch", "PATCH", MERGE[0], lambda n: {"metadata": {"annotations": {"x": str(n)}}}, MERGE[1]),
    Load(
        "merge patch of one object",
        "PATCH",
        f"{NAMESPACE}/pods/x",
        lambda n: {"metadata": {"annotations": {"x": str(n)}}},
        MERGE[1],
    ),
    Load("update of a config map", "PUT", f"{NAMESPACE}/configmaps/xNUMBER", _changed),
    Load(
        "JSON patch of a config map",
        "PATCH",
        f"{NAMESPACE}/configmaps/xNUMBER",
        lambda n: [{"op": "replace", "path": "/data/key", "value": str(n)}],
        "application/json-patch+json",
    ),
    Load("status patch of a pod", "PATCH", f"{MERGE[0]}/status", lambda n: {"status": _status(n)}, MERGE[1]),
    Load("status update of a pod", "PUT", f"{MERGE[0]}/status", lambda n: {**_pod(n), "status": _status(n)}),
    Load("apply, no change", "PATCH", APPLY[0], lambda n: _applied(n, "1"), APPLY[1]),
    Load("apply", "PATCH", APPLY[0], lambda n: _applied(n, str(n)), APPLY[1]),
]


class Sink(asyncio.Transport):
    """Takes answers, and tells whoever asked."""

    def __init__(self, answered: Callable[[bytes], object]) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.write = answered  # type: ignore[method-assign, assignment]

    def close(self) -> None:
        raise SystemExit("the server closed a connection")

    abort = close

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


def check(answer: bytes) -> None:
    """Stop at a request that failed: what that costs is not asked here."""
    if answer[9:11] != b"20":
        raise SystemExit(answer.decode(errors="replace"))


async def measure_reads(server: HttpServer, load: Load) -> float:
    """Microseconds a request."""
    answered = asyncio.Event()
    answer = b""

    def receive(data: bytes) -> None:
        nonlocal answer
        answer = data
        answered.set()

    protocol = server.protocol()
    protocol.connection_made(Sink(receive))
    request = load.bytes_of(0)
    protocol.data_received(request)
    await answered.wait()
    check(answer)
    best = float("inf")
    for _ in range(BATCHES):
        started = time.thread_time()
        for _ in range(ROUNDS):
            protocol.data_received(request)
        best = min(best, time.thread_time() - started)
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    return best / ROUNDS * 1e6


class Writers:
    """Clients that each send the next request when they have their answer."""

    def __init__(self, server: HttpServer, load: Load) -> None:
        self._server, self._load = server, load
        self._left = self._open = 0
        self._done = asyncio.Event()
        self._requests: list[bytes] = []
        self._sent = 0
        self._protocols = [self._connect(number) for number in range(CLIENTS)]

    def _connect(self, number: int) -> Any:
        protocol = self._server.protocol()
        loop = asyncio.get_running_loop()

        def receive(answer: bytes) -> None:
            check(answer)
            loop.call_soon(self._next, number)

        protocol.connection_made(Sink(receive))
        return protocol

    def _next(self, number: int) -> None:
        if self._requests:
            self._protocols[number].data_received(self._requests.pop())
        else:
            self._open -= 1
            if not self._open:
                self._done.set()

    async def run(self, count: int) -> float:
        """Microseconds of CPU a request."""
        self._requests = [self._load.bytes_of(self._sent + number) for number in range(count)]
        self._sent += count
        self._open = CLIENTS
        self._done.clear()
        started = time.process_time()
        for number in range(CLIENTS):
            self._next(number)
        await self._done.wait()
        return (time.process_time() - started) / count * 1e6

    def close(self) -> None:
        """Let the connections go."""
        for protocol in self._protocols:
            protocol.connection_lost(None)


class Opcodes:
    """Counts what the interpreter executes within, in this thread."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Opcodes:
        sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._note

    def _note(self, _: FrameType, event: str, __: object) -> Any:
        self.count += event == "opcode"
        return self._note


async def count_opcodes(server: HttpServer, load: Load) -> float:
    """Opcodes a request, the load's own included."""
    writers = Writers(server, load)
    await writers.run(WRITES)
    with Opcodes() as opcodes:
        await writers.run(WRITES)
    writers.close()
    return opcodes.count / WRITES


async def measure_writes(server: HttpServer, load: Load) -> float:
    """Microseconds a request, in the best batch."""
    writers = Writers(server, load)
    await writers.run(4 * CLIENTS)
    best = min([await writers.run(WRITES) for _ in range(WRITE_BATCHES)])
    writers.close()
    return best


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="measure what has this in its name")
    parser.add_argument("--opcodes", action="store_true", help="count opcodes of Python instead of time")
    options, flags = parser.parse_known_args()
    with TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text(TOKENS)
        async with InProcessServer("--controllers=-*", f"--token-auth-file={tokens}", *flags) as running:
            headers = {"Authorization": "Bearer exempt-token"}
            for path, body in OBJECTS:
                await running.request("POST", path, body, headers)
            while (await running.request("GET", WIDGETS, None, headers)).status != 200:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
            server = running.process.serving.http
            gc.set_threshold(*THRESHOLDS)
            gc.collect()
            gc.freeze()
            for load in READS + WRITTEN:
                if options.only in load.title:
                    measured = measure_reads if load in READS else measure_writes
                    measured, unit = (count_opcodes, "opcodes") if options.opcodes else (measured, "µs")
                    print(f"{load.title:32}{await measured(server, load):8.1f} {unit}", flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
