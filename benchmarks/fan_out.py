"""What one event to many watches costs: ``fan_out.py [--watches 1000] [--events 30] [--rounds 3]``.

Starts a fresh server, opens watches over TLS, creates config maps one after the other, and waits each time until every
watch has its event. The figure is the server's CPU time for an event beyond what the same create costs with no watch
at all: CPU time, because the clients that read share the machine with the server. Beside it stands what a server with
no logic needs to write as many bytes to as many connections: encryption, the network, and the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, cast

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from launching import free_port, running_server

TOKEN = "benchtoken"
MAPS = "/api/v1/namespaces/default/configmaps"
EVENT_WITHIN_SECONDS = 30.0
BODY = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "bench-", "labels": {"app": "bench"}},
        "data": {"a": "1", "b": "two", "c": "x" * 80},
    }
).encode()


class Arrivals:
    """How many events all watches together have seen, and who waits for a number of them."""

    def __init__(self) -> None:
        self.count = 0
        self._wanted = 0
        self._reached: asyncio.Future[None] | None = None

    def add(self, number: int) -> None:
        self.count += number
        if self._reached is not None and self.count >= self._wanted and not self._reached.done():
            self._reached.set_result(None)

    async def reach(self, wanted: int) -> None:
        if self.count < wanted:
            self._wanted, self._reached = wanted, asyncio.get_running_loop().create_future()
            await asyncio.wait_for(self._reached, EVENT_WITHIN_SECONDS)
        if self.count > wanted:
            raise SystemExit(f"{self.count} events arrived instead of {wanted}")


class Watch(asyncio.Protocol):
    """Reads one watch and counts its events."""

    def __init__(self, request: bytes, heads: Arrivals, arrivals: Arrivals) -> None:
        self._request, self._heads, self._arrivals = request, heads, arrivals
        self._began = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self._began:
            self._began = True
            self._heads.add(1)
        self._arrivals.add(data.count(b'{"type":"ADDED"'))


class Limit(asyncio.Protocol):
    """A server with no logic: whoever sends GET gets a piece of body whenever anybody sends POST."""

    watches: ClassVar[list[asyncio.Transport]] = []
    event: ClassVar[bytes] = b"2bc\r\n" + b'{"type":"ADDED"'.ljust(700, b" ") + b"\r\n"
    transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"GET") and b"watch=1" in data:
            self.watches.append(self.transport)
            self.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
            return
        answer = b'{"metadata":{"resourceVersion":"1"}}'
        self.transport.write(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        for watch in self.watches if data.startswith(b"POST") else ():
            watch.write(self.event)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport in self.watches:
            self.watches.remove(self.transport)


async def serve_limit(port: int, folder: Path) -> None:
    """Serve the limit with the certificate of the server."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    listening = await asyncio.get_running_loop().create_server(Limit, "127.0.0.1", port, ssl=tls)
    await listening.serve_forever()


@contextmanager
def running_limit(port: int, folder: Path) -> Iterator[int]:
    """The limit in a process of its own; its process id."""
    process = subprocess.Popen([sys.executable, __file__, "--limit", str(port), str(folder)])
    try:
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield process.pid
    finally:
        process.kill()
        process.wait()


class Measurement:
    """A server, and the connection that creates objects on it."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid, self._port = pid, port
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def run(self, watches: int, events: int) -> tuple[float, float]:
        """Milliseconds an event: the server's CPU time, and from sending it until the last watch has it."""
        heads, arrivals = Arrivals(), Arrivals()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        await self._create(reader, writer)
        request = self._head("GET", MAPS + f"?watch=1&resourceVersion={await self._version(reader, writer)}") + b"\r\n"
        loop = asyncio.get_running_loop()
        transports = []
        for _ in range(watches):
            opened = await loop.create_connection(
                lambda: Watch(request, heads, arrivals), "127.0.0.1", self._port, ssl=self._tls
            )
            transports.append(opened[0])
        await heads.reach(watches)
        await self._create(reader, writer)
        await arrivals.reach(watches)
        before, elapsed = self._cpu_seconds(), 0.0
        for number in range(events):
            start = time.perf_counter()
            await self._create(reader, writer)
            await arrivals.reach(watches * (number + 2))
            elapsed += time.perf_counter() - start
        spent = self._cpu_seconds() - before
        for transport in (*transports, writer.transport):
            transport.abort()
        return spent / events * 1000, elapsed / events * 1000

    async def _create(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        head = self._head("POST", MAPS)
        writer.write(b"%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (head, len(BODY), BODY))
        answer = await reader.readuntil(b"\r\n\r\n")
        if b" 201 " not in answer.split(b"\r\n")[0]:
            raise SystemExit(f"create refused: {answer!r}")
        return await self._body(answer, reader)

    async def _version(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        writer.write(self._head("GET", MAPS + "?limit=1") + b"\r\n")
        answer = await self._body(await reader.readuntil(b"\r\n\r\n"), reader)
        return str(json.loads(answer)["metadata"]["resourceVersion"])

    async def _body(self, head: bytes, reader: asyncio.StreamReader) -> bytes:
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return await reader.readexactly(int(length.split(b":")[1]))

    def _head(self, method: str, path: str) -> bytes:
        return f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {TOKEN}\r\n".encode()

    def _cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure in turns, without watches and with, and print each round: what else runs here must not decide."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", nargs=2, metavar=("PORT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.limit:
        uvloop.run(serve_limit(int(options.limit[0]), Path(options.limit[1])))
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as folder:
        tokens, port = Path(folder) / "tokens.csv", free_port()
        tokens.write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
        flags = [f"--data-dir={folder}/data", f"--secure-port={port}", f"--token-auth-file={tokens}"]
        with (
            running_server([*flags, "--bind-address=127.0.0.1"], port, TOKEN, Path(folder) / "log") as server,
            running_limit(limit_port := free_port(), Path(folder) / "data" / "pki") as limit_pid,
        ):
            measurement, limit = Measurement(server.pid, port), Measurement(limit_pid, limit_port)
            for _ in range(options.rounds):
                least, _ = uvloop.run(limit.run(options.watches, options.events))
                alone, _ = uvloop.run(measurement.run(0, 10 * options.events))
                spent, elapsed = uvloop.run(measurement.run(options.watches, options.events))
                print(
                    f"one event to {options.watches} watches: {spent - alone:6.2f} ms of server CPU "
                    f"(limit {least:6.2f}, a create alone {alone:.2f}); with the last watch after {elapsed:6.2f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
