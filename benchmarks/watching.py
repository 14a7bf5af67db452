"""Holds watches and counts their events: ``watching.py URL TOKEN WATCHES CONNECTIONS PID``; see ``connections.py``.

Speaks frames of HTTP/2 itself where watches share connections, and plain HTTP/1.1 where each has its own. Prints the
processor seconds that the server (PID) took for one event to all of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import hpack

from pilothouse.net.http2 import frames

NAMESPACE = "/api/v1/namespaces/default/configmaps"
WATCH = f"{NAMESPACE}?watch=1&fieldSelector=metadata.name%3Dfan"
EVENTS = 50
MARK = b'"type":"MODIFIED"'


class Counting:
    """Counts events over all connections."""

    def __init__(self) -> None:
        self.seen = 0
        self.wanted = 0
        self.reached = asyncio.Event()

    def note(self, data: bytes) -> bytes:
        """Bytes have come; what may be the beginning of a mark is to be given again with those that follow."""
        self.seen += data.count(MARK)
        if self.seen >= self.wanted:
            self.reached.set()
        return data[max(data.rfind(MARK) + len(MARK), len(data) - len(MARK) + 1) :]


async def main(url: str, token: str, watches: int, connections: int, pid: int) -> None:
    """Open all, write, wait for all to hear of it."""
    parts, counting = urlsplit(url), Counting()
    assert parts.hostname and parts.port
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    writing = await open_plain(parts.hostname, parts.port, context)
    await say(writing, token, "POST", NAMESPACE, {"metadata": {"name": "fan"}})
    shared = connections < watches
    if shared:
        context.set_alpn_protocols(["h2"])
    tasks = []
    for _ in range(connections):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context, limit=1 << 20)
        if shared:
            ask_many(writer, token, watches // connections)
        else:
            writer.write(f"GET {WATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        tasks.append(asyncio.ensure_future(listen(reader, writer, counting, shared)))
    await asyncio.sleep(3)
    before = processor_seconds(pid)
    for number in range(EVENTS):
        counting.wanted += watches
        counting.reached.clear()
        body = {"metadata": {"name": "fan"}, "data": {"a": str(number)}}
        await say(writing, token, "PUT", f"{NAMESPACE}/fan", body)
        async with asyncio.timeout(60):
            await counting.reached.wait()
    print((processor_seconds(pid) - before) / EVENTS)
    for task in tasks:
        task.cancel()
    await say(writing, token, "DELETE", f"{NAMESPACE}/fan", None)


def ask_many(writer: asyncio.StreamWriter, token: str, count: int) -> None:
    """One connection with many watches."""
    encoder = hpack.Encoder()
    large = 1 << 30
    writer.write(
        frames.PREFACE + frames.settings([(frames.INITIAL_WINDOW_SIZE, large)]) + frames.window_update(0, large)
    )
    for number in range(count):
        fields = [(":method", "GET"), (":scheme", "https"), (":path", WATCH), (":authority", "x")]
        block = encoder.encode([*fields, ("authorization", f"Bearer {token}")])
        writer.write(frames.headers(2 * number + 1, bytes(block), frames.END_STREAM))


async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counting: Counting, shared: bool) -> None:
    """Count what comes; acknowledge settings and pings."""
    rest = b""
    while data := await reader.read(1 << 16):
        rest = counting.note(rest + data)
        if shared and b"\0\0\0\4\0\0\0\0\0" in data:
            writer.write(frames.SETTINGS_ACK)


Plain = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def open_plain(host: str, port: int, context: ssl.SSLContext) -> Plain:
    """A connection for writing."""
    return await asyncio.open_connection(host, port, ssl=context)


async def say(connection: Plain, token: str, method: str, path: str, body: object) -> None:
    """One request whose answer does not matter."""
    reader, writer = connection
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))
