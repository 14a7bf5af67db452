"""A TLS connection over a real socket, with a client that reads as it likes."""

import asyncio
import gc
import logging
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.net.greetings import Greetings
from pilothouse.net.parking import Parking
from pilothouse.net.tls_transport import SCRATCH, Handshake, Session, TlsTransport

WITHIN = 120.0


class Recording(asyncio.Protocol):
    """Notes everything a transport tells it."""

    def __init__(self) -> None:
        self.input = b""
        self.pieces: list[int] = []
        self.told: list[str] = []
        self.error: Exception | None = None
        self.lost = asyncio.get_running_loop().create_future()
        self.changed = asyncio.Event()
        self.busy = False
        self.broken = False
        self.pauses = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.broken:
            raise RuntimeError("broken on purpose")
        self.input += data
        self.pieces.append(len(data))
        if self.pauses:
            self.transport.pause_reading()
        self.changed.set()

    def eof_received(self) -> None:
        self.note("eof")

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        assert not self.busy, "told from within a call"
        self.error = exc
        self.note("lost")
        self.lost.set_result(None)

    def note(self, what: str) -> None:
        self.told.append(what)
        self.changed.set()

    async def until(self, met: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN):
            while not met():
                self.changed.clear()
                await self.changed.wait()


class Peer:
    """The client's end: a socket that is read only when asked."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self.sock = sock

    async def send(self, data: bytes) -> None:
        await asyncio.to_thread(self.sock.sendall, data)

    async def read(self, count: int) -> bytes:
        return await asyncio.to_thread(self._read, count)

    def _read(self, count: int) -> bytes:
        pieces = []
        while count > 0 and (piece := self.sock.recv(min(count, 100_000))):
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)


@asynccontextmanager
async def connected(pki: tuple[ssl.SSLContext, ssl.SSLContext]) -> AsyncIterator[tuple[TlsTransport, Recording, Peer]]:
    served, trusted = pki
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        raw = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
    raw.settimeout(WITHIN)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setblocking(False)
    done: asyncio.Future[Session | None] = loop.create_future()
    Handshake(
        loop, accepted, "", served, WITHIN, Greetings(loop), lambda _: None, lambda _, session: done.set_result(session)
    ).begin()
    client = await asyncio.to_thread(trusted.wrap_socket, raw, server_hostname="localhost")
    session = await done
    assert session is not None
    protocol = Recording()
    transport = TlsTransport(loop, session, protocol)
    try:
        yield transport, protocol, Peer(client)
    finally:
        client.close()
        transport.abort()
        await asyncio.wait_for(protocol.lost, WITHIN)
        assert protocol.told.count("lost") == 1
        assert accepted.fileno() == -1


@pytest.fixture(scope="module")
def pki(authority: Any) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*authority.issue("localhost", "localhost"))
    return served, ssl.create_default_context(cafile=authority.file)


def fill(transport: TlsTransport, protocol: Recording, piece: bytes = bytes(50_000)) -> int:
    """Write until the protocol is told to stop; how much that was."""
    protocol.busy, written = True, 0
    while protocol.told[-1:] != ["pause"]:
        transport.write(piece)
        written += len(piece)
    protocol.busy = False
    return written


async def test_pieces_arrive_in_order_through_a_slow_client(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        written = fill(transport, protocol)
        assert transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]
        for number in range(2000):
            transport.write(b"%07d" % number)
        received = await peer.read(written + 14_000)
        assert received[written:] == b"".join(b"%07d" % number for number in range(2000))
        await protocol.until(lambda: protocol.told[-1] == "resume")
        assert transport.get_write_buffer_size() == 0
        transport.write(b"and on")
        assert await peer.read(6) == b"and on"
        assert protocol.told == ["pause", "resume"]


@settings(max_examples=25, deadline=None)
@given(
    pieces=st.lists(st.integers(0, 300_000), min_size=1, max_size=30),
    lines=st.lists(st.integers(0, 40_000), min_size=1, max_size=4),
    pauses=st.sets(st.integers(0, 29)),
)
def test_whatever_is_written_is_what_arrives(pki: Any, pieces: list[int], lines: list[int], pauses: set[int]) -> None:
    async def exchange() -> None:
        async with connected(pki) as (transport, _, peer):
            expected = []
            for number, size in enumerate(pieces):
                expected.append(bytes([number]) * size)
                transport.write(expected[-1])
                if number in pauses:
                    await asyncio.sleep(0)
            expected += [bytes([100 + number]) * size for number, size in enumerate(lines)]
            transport.writelines(expected[-len(lines) :])
            transport.close()
            transport.write(b"too late")
            assert await peer.read(20_000_000) == b"".join(expected)

    uvloop.run(exchange())


async def test_closing_sends_what_is_buffered_first(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        written = fill(transport, protocol)
        protocol.busy = True
        transport.close()
        protocol.busy = False
        assert transport.is_closing()
        assert len(await peer.read(written + 1)) == written
        assert protocol.told[0] == "pause"
        assert "lost" not in protocol.told, "the client's own goodbye is awaited"
        peer.sock.close()
        await protocol.until(lambda: protocol.told[-1] == "lost")
        assert protocol.error is None


async def test_an_answer_survives_input_nobody_read(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        transport.pause_reading()
        sending = asyncio.create_task(peer.send(bytes(8_000_000)))
        transport.write(b"enough!")
        transport.close()
        assert await peer.read(100) == b"enough!"
        await sending
        assert protocol.input == b""


async def test_nothing_is_read_while_reading_is_paused(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        await peer.send(b"one")
        await protocol.until(lambda: protocol.input == b"one")
        transport.pause_reading()
        assert not transport.is_reading()
        await peer.send(b"two" * 20_000)
        transport.write(b"still writing")
        assert await peer.read(13) == b"still writing"
        assert protocol.input == b"one"
        transport.resume_reading()
        await protocol.until(lambda: protocol.input == b"one" + b"two" * 20_000)


class Crowd:
    """Turns that somebody waits for until they are his."""

    def __init__(self) -> None:
        self.has_room = False
        self.waiting: list[TlsTransport] = []

    def admits(self, reader: TlsTransport) -> bool:
        if not self.has_room:
            self.waiting.append(reader)
        return self.has_room

    def has_read(self, reader: TlsTransport) -> None:
        pass


async def test_the_loop_does_not_remind_of_those_who_wait(pki: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reminded, readable = 0, TlsTransport._readable

    def count(transport: TlsTransport) -> None:
        nonlocal reminded
        reminded += 1
        readable(transport)

    monkeypatch.setattr(TlsTransport, "_readable", count)
    async with connected(pki) as (transport, protocol, peer):
        crowd = Crowd()
        monkeypatch.setattr(transport, "_turns", crowd)
        await peer.send(b"some")
        async with asyncio.timeout(WITHIN):
            while not crowd.waiting:
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (reminded, protocol.input) == (2, b"")
        crowd.has_room = True
        crowd.waiting.pop().read_late()
        assert protocol.input == b"some"
        await peer.send(b" more")
        await protocol.until(lambda: protocol.input == b"some more")


@pytest.mark.parametrize("pauses", [False, True])
async def test_closing_while_others_are_read_from(pki: Any, pauses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(pki) as (transport, protocol, peer):
        crowd = Crowd()
        monkeypatch.setattr(transport, "_turns", crowd)
        await peer.send(b"some")
        async with asyncio.timeout(WITHIN):
            while not crowd.waiting:
                await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0)
        if pauses:
            transport.pause_reading()
        transport.close()
        crowd.waiting.pop().read_late()
        await asyncio.to_thread(peer.sock.close)
        await protocol.until(lambda: "lost" in protocol.told)
        assert protocol.input == b""


@pytest.mark.parametrize("goodbye", [True, False], ids=["with a goodbye", "cut off"])
async def test_a_client_that_leaves(pki: Any, goodbye: bool) -> None:
    async with connected(pki) as (_, protocol, peer):
        if goodbye:
            await asyncio.to_thread(peer.sock.unwrap)
        else:
            socket.socket.shutdown(peer.sock, socket.SHUT_RDWR)
        await protocol.until(lambda: protocol.told == ["eof", "lost"])
        assert protocol.error is None


async def test_a_client_that_resets_while_we_write(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        fill(transport, protocol)
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        peer.sock.close()
        await protocol.until(lambda: protocol.told[-1] == "lost")
        assert isinstance(protocol.error, OSError)
        transport.write(b"into the void")
        assert transport.get_write_buffer_size() == 0


async def test_noise_in_a_session_ends_it(pki: Any) -> None:
    async with connected(pki) as (_, protocol, peer):
        with socket.socket(fileno=peer.sock.detach()) as raw:
            raw.setblocking(True)
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            await protocol.until(lambda: protocol.told == ["lost"])
        assert isinstance(protocol.error, ssl.SSLError)


async def test_records_that_came_together_are_handed_over_together(pki: Any) -> None:
    async with connected(pki) as (_, protocol, peer):
        for _ in range(3):
            peer.sock.sendall(bytes(10_000))  # on this thread: nothing is read in between
        await protocol.until(lambda: len(protocol.input) == 30_000)
        assert protocol.pieces == [30_000]
        peer.sock.sendall(bytes(100_000))  # in more records than are read at once
        await protocol.until(lambda: len(protocol.input) == 130_000)
        assert max(protocol.pieces) <= len(SCRATCH.view)


async def test_a_goodbye_together_with_the_last_record(pki: Any) -> None:
    async with connected(pki) as (_, protocol, peer):
        peer.sock.sendall(b"one")
        peer.sock.sendall(b"two")
        peer.sock.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            peer.sock.unwrap()
        await protocol.until(lambda: protocol.told == ["eof", "lost"])
        assert protocol.input == b"onetwo"


async def test_a_goodbye_waits_until_reading_goes_on(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        protocol.pauses = True
        peer.sock.sendall(b"one")
        peer.sock.sendall(b"two")
        peer.sock.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            peer.sock.unwrap()
        await protocol.until(lambda: protocol.input == b"onetwo")
        for _ in range(3):
            await asyncio.sleep(0)
        assert protocol.told == []
        transport.resume_reading()
        await protocol.until(lambda: protocol.told == ["eof", "lost"])


async def test_what_came_before_noise_is_handed_over(pki: Any) -> None:
    async with connected(pki) as (_, protocol, peer):
        peer.sock.sendall(b"good")
        with socket.socket(fileno=peer.sock.detach()) as raw:
            raw.setblocking(True)
            raw.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            await protocol.until(lambda: protocol.told == ["lost"])
        assert protocol.input == b"good"
        assert isinstance(protocol.error, ssl.SSLError)


async def test_a_protocol_that_fails_loses_its_connection_only(pki: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with connected(pki) as (_, protocol, peer):
        protocol.broken = True
        with caplog.at_level(logging.CRITICAL, "pilothouse.net.tls_transport"):
            await peer.send(b"anything")
            await protocol.until(lambda: protocol.told == ["lost"])
        assert isinstance(protocol.error, RuntimeError)


async def test_a_handshake_that_is_abandoned(pki: Any) -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as raw:
        accepted, _ = listening.accept()
        accepted.setblocking(False)
        ends: list[object] = []
        handshake = Handshake(
            loop, accepted, "", pki[0], WITHIN, Greetings(loop), lambda _: None, lambda _, sock: ends.append(sock)
        )
        handshake.abandon()
        assert ends == [None]
        raw.settimeout(WITHIN)
        assert raw.recv(1) == b""


async def test_nothing_of_a_connection_waits_for_the_collector(pki: Any) -> None:
    async def connect_and_part() -> list[weakref.ref[Any]]:
        async with connected(pki) as (transport, protocol, peer):
            await peer.send(b"hello")
            await protocol.until(lambda: protocol.input)
            transport.write(b"hello")
            transport.close()
            peer.sock.close()
            await protocol.until(lambda: protocol.told == ["lost"])
        return [weakref.ref(protocol), weakref.ref(transport.get_extra_info("ssl_object"))]

    gc.disable()
    try:
        ends = await connect_and_part()
        await asyncio.sleep(0)
        assert [end() for end in ends] == [None, None]
    finally:
        gc.enable()


async def test_a_connection_that_is_parked_goes_on_as_before(pki: Any) -> None:
    async with connected(pki) as (transport, protocol, peer):
        loop = asyncio.get_running_loop()
        parking = Parking(loop)
        transport.park(parking)
        transport.park(parking)
        assert len(parking) == 1
        await peer.send(b"one")
        await protocol.until(lambda: protocol.input == b"one")
        transport.pause_reading()
        assert len(parking) == 0
        transport.write(b"two")
        assert await peer.read(3) == b"two"
        transport.resume_reading()
        await peer.send(b"three")
        await protocol.until(lambda: protocol.input == b"onethree")
        transport.close()
        assert len(parking) == 1
        transport.abort()
        await protocol.lost
        assert len(parking) == 0
        parking.close()


async def test_what_nobody_reads_is_kept_as_it_was_given(pki: Any) -> None:
    """Of a long piece hardly more is encrypted than the socket takes, so that many can wait for one piece."""
    async with connected(pki) as (transport, protocol, peer):
        piece = b"x" * 40_000_000
        given: list[int] = []
        tls, transport._tls = transport._tls, Noting(transport._tls, given)
        transport.write(piece)
        assert protocol.told == ["pause"]
        assert sum(given) < len(piece) / 2
        assert max(given) <= 128 * 1024
        transport._tls = tls
        transport.write(b"end")
        assert await peer.read(len(piece) + 3) == piece + b"end"


class Noting:
    """Notes how much it is given to encrypt."""

    def __init__(self, tls: Any, given: list[int]) -> None:
        self._tls, self._given, self.read = tls, given, tls.read

    def write(self, data: bytes) -> None:
        self._given.append(len(data))
        self._tls.write(data)


async def test_tls_is_given_what_came_in_morsels(pki: Any) -> None:
    """Its buffer is as large ever after as what it was once given."""
    async with connected(pki) as (transport, protocol, peer):
        given: list[int] = []
        incoming = transport._incoming

        class Morsels:
            """Stands before the buffer."""

            @property
            def pending(self) -> int:
                return incoming.pending

            def write(self, data: memoryview) -> None:
                given.append(len(data))
                incoming.write(data)

        transport._incoming = Morsels()
        protocol.pauses = True
        sent = bytes(range(256)) * 4000
        sending = asyncio.ensure_future(peer.send(sent))
        while len(protocol.input) < len(sent):
            before = len(protocol.pieces)
            transport.resume_reading()
            await protocol.until(lambda before=before: len(protocol.pieces) > before)
        await sending
        assert protocol.input == sent
        assert max(given) <= 32 * 1024
