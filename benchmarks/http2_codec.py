"""What a GET costs in the codec of HTTP/2 alone: that of the server beside `h2`, which it might have used instead.

    .venv/bin/python benchmarks/http2_codec.py

One connection, no sockets: the bytes of ten requests at a time go in, the bytes of ten answers come out. Once with
heads that repeat, as those of most clients do, and once with a new path each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final, cast

import h2.config
import h2.connection
import h2.events
import hpack

from pilothouse.net.http2 import frames
from pilothouse.net.http2.connection import Http2Connection
from pilothouse.net.messages import Request, Response
from pilothouse.net.server import HttpServer

_TURNS: Final = 1500
_STREAMS: Final = 10
_BODY: Final = b"x" * 400
_ANSWER: Final = [("audit-id", "7f1c0b4e-9d5e-4a53-8f6b-3c1f0d6a2b11"), ("cache-control", "no-cache, private")]


def requests(repeated: bool) -> list[bytes]:
    """What a client sends: ten heads a turn."""
    encoder, turns, number = hpack.Encoder(), [], 1
    for turn in range(_TURNS):
        wire = b""
        for stream in range(_STREAMS):
            path = "/api/v1/namespaces/default/configmaps/" + ("a" if repeated else f"a{turn}-{stream}")
            fields = [(":method", "GET"), (":scheme", "https"), (":path", path), (":authority", "127.0.0.1:6443")]
            fields += [("authorization", "Bearer " + "t" * 900), ("accept", "application/json"), ("user-agent", "x/1")]
            wire += frames.headers(number, bytes(encoder.encode(fields)), frames.END_STREAM)
            number += 2
        turns.append(wire + frames.window_update(0, len(_BODY) * _STREAMS))
    return turns


def with_h2(turns: list[bytes]) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
    connection.initiate_connection()
    connection.receive_data(frames.PREFACE + frames.settings([]))
    head = [(":status", "200"), ("content-type", "application/json"), *_ANSWER]
    head += [("date", "Tue, 17 Nov 2026 02:15:28 GMT"), ("content-length", str(len(_BODY)))]
    for wire in turns:
        for event in connection.receive_data(wire):
            if isinstance(event, h2.events.RequestReceived):
                connection.send_headers(event.stream_id, head)
                connection.send_data(event.stream_id, _BODY, end_stream=True)
        connection.data_to_send()


class _Nowhere(asyncio.Transport):
    def write(self, data: Any) -> None:
        """Drop it."""

    def is_closing(self) -> bool:
        return False


async def with_ours(turns: list[bytes]) -> None:
    headers = [(name.encode(), value.encode()) for name, value in _ANSWER]

    async def handler(_: Request) -> Response:
        return Response(200, _BODY, headers=headers)

    server = HttpServer(handler)
    connection = cast(Http2Connection, server.protocol("h2"))
    connection.connection_made(_Nowhere())

    async def feed(wire: bytes) -> None:
        for at in range(0, len(wire), 16384):
            connection.data_received(wire[at : at + 16384])

    await feed(frames.PREFACE + frames.settings([]))
    for wire in turns:
        await feed(wire)
    connection.connection_lost(None)
    await server.close()


def microseconds(work: Callable[[list[bytes]], object], turns: list[bytes]) -> float:
    started = time.process_time()
    work(turns)
    return (time.process_time() - started) * 1e6 / (_TURNS * _STREAMS)


def main() -> None:
    for name, repeated in (("the same head again", True), ("a new path each time", False)):
        turns = requests(repeated)
        library = microseconds(with_h2, turns)
        ours = microseconds(lambda turns: asyncio.run(with_ours(turns)), turns)
        print(f"{name}: h2 {library:.1f} us, ours {ours:.1f} us with its exchange, {library / ours:.1f} times less")


if __name__ == "__main__":
    main()
