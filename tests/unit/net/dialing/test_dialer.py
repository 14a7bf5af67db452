"""Connections of our own: whom they may reach, and whom they trust."""

import asyncio
import ssl
from pathlib import Path

import pytest

from pilothouse.credentials.pki import ensure_pki
from pilothouse.net.dialing import Dialer, DialError, Target, Tls, is_global_unicast


async def _listen(context: ssl.SSLContext | None = None) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::ffff:127.0.0.1"])
async def test_guarded_addresses_are_refused_after_resolution(host: str) -> None:
    server = await _listen()
    with pytest.raises(DialError, match="address not allowed"):
        await Dialer().connect(Target(host, _port(server), guard=is_global_unicast), asyncio.Protocol)
    server.close()


async def test_nobody_listens_or_is_known() -> None:
    with pytest.raises(DialError, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused"):
        await Dialer().connect(Target("127.0.0.1", 1), asyncio.Protocol)
    with pytest.raises(DialError, match=r"lookup a\.invalid: "):
        await Dialer().connect(Target("a.invalid", 1), asyncio.Protocol)


async def test_a_renewed_authority_is_read(tmp_path: Path) -> None:
    first = ensure_pki(tmp_path / "first", dns_names=("localhost",), ip_addresses=("127.0.0.1",))
    second = ensure_pki(tmp_path / "second", dns_names=("localhost",), ip_addresses=("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(first.serving_cert, first.serving_key)
    server = await _listen(context)
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(Path(second.ca_cert).read_bytes())
    dialer, target = Dialer(), Target("127.0.0.1", _port(server), Tls(authorities_file=str(trusted)))
    with pytest.raises(DialError, match="signed by unknown authority"):
        await dialer.connect(target, asyncio.Protocol)
    trusted.write_bytes(Path(first.ca_cert).read_bytes() + b"\n")
    transport, _ = await dialer.connect(target, asyncio.Protocol)
    transport.close()
    with pytest.raises(DialError, match=r"certificate is valid for .*localhost.*, not other"):
        other = Tls(authorities_file=str(trusted), server_name="other")
        await dialer.connect(Target("127.0.0.1", _port(server), other), asyncio.Protocol)
    server.close()


async def test_a_certificate_may_be_trusted_by_itself(tmp_path: Path) -> None:
    """controller-runtime's envtest gives a webhook's own certificate, not its authority's, as the caBundle."""
    pki = ensure_pki(tmp_path, dns_names=("localhost",), ip_addresses=("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving_cert, pki.serving_key)
    server = await _listen(context)
    target = Target("127.0.0.1", _port(server), Tls(authorities=Path(pki.serving_cert).read_bytes()))
    transport, _ = await Dialer().connect(target, asyncio.Protocol)
    transport.close()
    server.close()


async def test_a_server_that_hangs_up_in_the_handshake() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    with pytest.raises(DialError, match=r"EOF|connection reset by peer"):
        await Dialer().connect(Target("127.0.0.1", _port(server), Tls(insecure=True)), asyncio.Protocol)
    server.close()


class _Recording(asyncio.Protocol):
    def __init__(self) -> None:
        self.data, self.lost = b"", asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


async def test_tls_both_ways_and_another_protocol_takes_over(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
            if data.endswith(b"!"):
                writer.close()

    pki = ensure_pki(tmp_path, dns_names=("localhost",), ip_addresses=("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving_cert, pki.serving_key)
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
    target = Target("127.0.0.1", _port(server), Tls(insecure=True))
    transport, first = await Dialer().connect(target, _Recording)
    second = _Recording()
    transport.set_protocol(second)
    sent = b"x" * 300_000 + b"!"
    transport.write(sent)
    async with asyncio.timeout(120):
        await second.lost.wait()
    assert (first.data, second.data) == (b"", sent)
    server.close()


@pytest.mark.parametrize(
    ("alert", "words"),
    [
        (20, "bad record MAC"),
        (40, "handshake failure"),
        (42, "bad certificate"),
        (45, "expired certificate"),
        (48, "unknown certificate authority"),
        (70, "protocol version not supported"),
        (80, "internal error"),
        (112, "unrecognized name"),
        (116, "certificate required"),
    ],
)
async def test_what_the_other_side_complains_about(alert: int, words: str) -> None:
    """A kubelet whose serving certificate nobody has approved yet answers with an internal error, and users search for
    ``remote error: tls: internal error``."""

    async def complain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(bytes([21, 3, 3, 0, 2, 2, alert]))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(complain, "127.0.0.1", 0) as server:
        with pytest.raises(DialError) as raised:
            await Dialer().connect(Target("127.0.0.1", _port(server), Tls(insecure=True)), asyncio.Protocol)
    assert str(raised.value) == f"remote error: tls: {words}"
