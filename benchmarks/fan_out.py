"""What one event to many watches costs: ``fan_out.py [--watches 1000] [--events 30] [--rounds 3]``.

Starts a fresh server, opens watches over TLS, creates config maps one after the other, and waits each time until every
watch has its event. The figure is the server's CPU time for an event beyond what the same create costs with no watch
at all: CPU time, because the clients that read share the machine with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import uvloop

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from launching import RunningServer, free_port, running_server

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

    def __init__(self, request: bytes, arrivals: Arrivals) -> None:
        self._request, self._arrivals = request, arrivals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        self._arrivals.add(data.count(b'{"type":"ADDED"'))


class Measurement:
    """A server, and the connection that creates objects on it."""

    def __init__(self, server: RunningServer, port: int) -> None:
        self._server, self._port = server, port
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname = False
        self._tls.verify_mode = ssl.CERT_NONE

    async def run(self, watches: int, events: int) -> tuple[float, float]:
        """Milliseconds an event: the server's CPU time, and from sending it until the last watch has it."""
        arrivals = Arrivals()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        await self._create(reader, writer)
        request = self._head("GET", MAPS + f"?watch=1&resourceVersion={await self._version(reader, writer)}") + b"\r\n"
        loop = asyncio.get_running_loop()
        transports = []
        for _ in range(watches):
            opened = await loop.create_connection(
                lambda: Watch(request, arrivals), "127.0.0.1", self._port, ssl=self._tls
            )
            transports.append(opened[0])
        await self._create(reader, writer)  # seen by every watch once all are open
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
        fields = Path(f"/proc/{self._server.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure in turns, without watches and with, and print each round: what else runs here must not decide."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watches", type=int, default=1000)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as folder:
        tokens, port = Path(folder) / "tokens.csv", free_port()
        tokens.write_text(f'{TOKEN},bench,bench-uid,"system:masters"\n')
        flags = [f"--data-dir={folder}/data", f"--secure-port={port}", f"--token-auth-file={tokens}"]
        with running_server([*flags, "--bind-address=127.0.0.1"], port, TOKEN, Path(folder) / "log") as server:
            measurement = Measurement(server, port)
            for _ in range(options.rounds):
                alone, _ = uvloop.run(measurement.run(0, 10 * options.events))
                spent, elapsed = uvloop.run(measurement.run(options.watches, options.events))
                print(
                    f"one event to {options.watches} watches: {spent - alone:6.2f} ms of server CPU "
                    f"(a create alone {alone:.2f}), with the last watch after {elapsed:6.2f} ms",
                    flush=True,
                )


if __name__ == "__main__":
    main()
