import asyncio
import gc
import os
import socket
import ssl
import struct
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pilothouse.net.listener import Listener, bind
from pilothouse.net.messages import Request, Response
from pilothouse.net.server import HttpServer, Limits
from pilothouse.net.tls import ServerTls, SniCertificate, TlsFiles, verifies_itself

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def trusting(authority: Any, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.file)
    if certificate:
        context.load_cert_chain(*certificate)
    return context


async def who(request: Request) -> Response:
    chain = request.connection.peer_chain
    assert chain[:1] == ([request.connection.peer_certificate] if chain else [])
    return Response(200, b"%d %b %b" % (len(chain), request.connection.scheme.encode(), chain[0] if chain else b"-"))


@pytest.fixture
def serving(authority: Any) -> TlsFiles:
    cert, key = authority.issue("server", "127.0.0.1", "localhost")
    return TlsFiles(cert, key, (authority.file,))


async def ask(running: Any, context: ssl.SSLContext, name: str | None = None) -> bytes:
    client = await running.dial(ssl=context, server_hostname=name or "127.0.0.1")
    client.send(GET)
    body: bytes = (await client.answer())[1]
    return body


async def test_without_a_client_certificate(serve: Any, serving: TlsFiles, authority: Any) -> None:
    running = await serve(who, ServerTls(serving).context)
    assert await ask(running, trusting(authority)) == b"0 https -"


async def test_a_client_certificate_is_visible(serve: Any, serving: TlsFiles, authority: Any) -> None:
    pair = authority.issue("alice")
    running = await serve(who, ServerTls(serving).context)
    der = ssl.PEM_cert_to_DER_cert(Path(pair[0]).read_text())
    # OpenSSL's client adds the issuer, because it trusts it.
    assert await ask(running, trusting(authority, pair)) == b"2 https " + der


async def test_a_reset_right_behind_part_of_a_body_is_noticed(serve: Any, serving: TlsFiles, authority: Any) -> None:
    waiting, gone = asyncio.Event(), asyncio.Event()

    async def handler(request: Request) -> Response:
        waiting.set()
        request.on_disconnect(gone.set)
        return Response(200, await request.body())

    running = await serve(handler, ServerTls(serving).context, Limits(sweep_interval=0.01))

    def begin() -> ssl.SSLSocket:
        plain = socket.create_connection(running.listener.address)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = trusting(authority).wrap_socket(plain, server_hostname="127.0.0.1")
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
        return client

    client = await asyncio.to_thread(begin)
    await waiting.wait()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(b" ")  # the loop is told of this and of the reset at once, because it does not look in between
    client.close()
    async with asyncio.timeout(60):
        await gone.wait()


@pytest.mark.skipif(verifies_itself(), reason="this Python hides its OpenSSL")
async def test_an_untrusted_client_certificate_does_not_fail_the_handshake(
    serve: Any, serving: TlsFiles, authority: Any, stranger: Any
) -> None:
    pair = stranger.issue("mallory")
    running = await serve(who, ServerTls(serving).context)
    der = ssl.PEM_cert_to_DER_cert(Path(pair[0]).read_text())
    assert await ask(running, trusting(authority, pair)) == b"1 https " + der


@pytest.mark.parametrize(("offered", "agreed"), [(("h2", "http/1.1"), "h2"), (("http/1.1",), "http/1.1")])
async def test_alpn_agrees_on_the_best_offered(
    serve: Any, serving: TlsFiles, authority: Any, offered: tuple[str, ...], agreed: str
) -> None:
    running = await serve(who, ServerTls(replace(serving, protocols=offered)).context)
    context = trusting(authority)
    context.set_alpn_protocols(["h2", "http/1.1"])
    client = await running.dial(ssl=context, server_hostname="127.0.0.1")
    assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == agreed


@pytest.mark.parametrize(
    ("name", "common_name"),
    [
        ("exact.test", "sni-one"),
        ("EXACT.test", "sni-one"),
        ("a.wild.test", "sni-two"),
        ("a.b.wild.test", "server"),
        ("carried.test", "sni-three"),
        ("localhost", "server"),
    ],
)
async def test_sni_chooses_the_certificate(
    serve: Any, serving: TlsFiles, authority: Any, name: str, common_name: str
) -> None:
    files = TlsFiles(
        serving.cert_file,
        serving.key_file,
        sni=(
            SniCertificate(*authority.issue("sni-one"), names=("exact.test",)),
            SniCertificate(*authority.issue("sni-two"), names=("*.wild.test",)),
            SniCertificate(*authority.issue("sni-three", "carried.test")),
        ),
    )
    running = await serve(who, ServerTls(files).context)
    context = trusting(authority)
    context.check_hostname = False
    client = await running.dial(ssl=context, server_hostname=name)
    subject = client.writer.get_extra_info("peercert")["subject"]
    assert subject == ((("commonName", common_name),),)


async def test_reloading(serving: TlsFiles, authority: Any, tmp_path: Path) -> None:
    cert, key = tmp_path / "c", tmp_path / "k"

    def install(pair: tuple[str, str]) -> None:
        cert.write_bytes(Path(pair[0]).read_bytes())
        key.write_bytes(Path(pair[1]).read_bytes())
        install.tick += 1  # type: ignore[attr-defined]
        for path in (cert, key):
            os.utime(path, ns=(install.tick, install.tick))  # type: ignore[attr-defined]

    install.tick = 0  # type: ignore[attr-defined]
    install(authority.issue("first"))
    tls = ServerTls(TlsFiles(str(cert), str(key)))
    first = tls.context()
    assert tls.reload_if_changed() is False
    cert.write_text("broken")
    assert tls.reload_if_changed() is False and tls.context() is first
    install(authority.issue("second"))
    assert tls.reload_if_changed() is True and tls.context() is not first


async def test_minimum_version_and_ciphers_are_used(serve: Any, serving: TlsFiles, authority: Any) -> None:
    files = TlsFiles(serving.cert_file, serving.key_file, cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",))
    running = await serve(who, ServerTls(files).context)
    context = trusting(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    client = await running.dial(ssl=context, server_hostname="127.0.0.1")
    assert client.writer.get_extra_info("cipher")[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.parametrize("sent", [GET, b"POST / HTTP/1.1\r\n", b"PUT /x HTTP/1.0\r\n\r\n", b"OPTIONS * HTTP/1.1\r\n"])
async def test_plain_http_on_the_tls_port(serve: Any, serving: TlsFiles, sent: bytes) -> None:
    running = await serve(who, ServerTls(serving).context)
    assert await running.exchange(sent) == (
        b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    )


async def test_noise_on_the_tls_port_is_dropped(serve: Any, serving: TlsFiles, authority: Any) -> None:
    running = await serve(who, ServerTls(serving).context)
    client = await running.dial()
    assert b"HTTP" not in await client.roundtrip(b"\x00" * 64)
    assert await ask(running, trusting(authority)) == b"0 https -"


async def test_a_silent_client_is_given_up(serving: TlsFiles) -> None:
    server = HttpServer(who)
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context, handshake_timeout=0)
    listener.start()
    reader, writer = await asyncio.open_connection(*listener.address)
    assert await reader.read() == b""
    writer.close()
    listener.stop()
    await server.close()


async def test_a_crowd_whose_time_is_over_goes_in_turns(serving: TlsFiles) -> None:
    server = HttpServer(who)
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context, handshake_timeout=3600)
    listener.start()
    crowd = [socket.create_connection(listener.address) for _ in range(150)]
    while listener.newcomers < len(crowd):
        await asyncio.sleep(0)
    listener._due = dict.fromkeys(listener._due, 0.0)
    listener._expire()
    left = [listener.newcomers]
    while listener.newcomers:
        await asyncio.sleep(0)
        left.append(listener.newcomers)
    assert left == [150 - 64, 150 - 128, 0]
    for client in crowd:
        client.close()
    listener.stop()
    await server.close()


async def test_who_has_spoken_is_not_taken_for_silent(serving: TlsFiles, authority: Any) -> None:
    server = HttpServer(who)
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context, max_silent=64)
    crowd = [socket.create_connection(listener.address) for _ in range(200)]
    for client in crowd:
        client.sendall(_client_hello(trusting(authority)))
    listener.start()
    answers = await asyncio.gather(*(asyncio.to_thread(client.recv, 1) for client in crowd))
    assert set(answers) == {b"\x16"}
    for client in crowd:
        client.close()
    listener.stop()
    await server.close()


def _client_hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


async def test_clients_wait_for_room_and_not_for_those_who_stall(serving: TlsFiles, authority: Any) -> None:
    server = HttpServer(who)
    limits = {"max_handshakes": 1, "max_stalled": 1}
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context, **limits)
    listener.start()
    stalling = [socket.create_connection(listener.address) for _ in range(2)]
    for client in stalling:
        client.sendall(_client_hello(trusting(authority)))
    assert await asyncio.to_thread(stalling[0].recv, 1) == b"\x16"
    others = [asyncio.open_connection(*listener.address, ssl=trusting(authority)) for _ in range(8)]
    for _, writer in await asyncio.gather(*others):
        writer.close()
    while await asyncio.to_thread(stalling[0].recv, 4096):  # it made room for the other one who stalls
        pass
    for client in stalling:
        client.close()
    listener.stop()
    await server.close()


async def test_a_line_of_waiting_clients_ends_somewhere(serving: TlsFiles) -> None:
    server = HttpServer(who)
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context, max_waiting=1)
    crowd = [socket.create_connection(listener.address) for _ in range(200)]
    for client in crowd:
        client.sendall(GET)
    listener.start()
    answers = await asyncio.gather(*(asyncio.to_thread(_rest, client) for client in crowd))
    assert set(answers) == {b"", b"HTTP/1.0 400 Bad Request"}
    assert listener.newcomers == 0
    listener.stop()
    await server.close()


def _rest(client: socket.socket) -> bytes:
    """The first line of the answer; nothing from a server that hung up."""
    try:
        return client.recv(100).split(b"\r\n")[0]
    except ConnectionResetError:
        return b""
    finally:
        client.close()


async def test_stopping_drops_silent_clients_and_the_port(serving: TlsFiles) -> None:
    server = HttpServer(who)
    listener = Listener(server, bind("127.0.0.1", 0), ServerTls(serving).context)
    listener.start()
    address = listener.address
    reader, writer = await asyncio.open_connection(*address)
    await asyncio.sleep(0)
    listener.stop()
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)
    await server.close()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
async def test_ipv6() -> None:
    server = HttpServer(who)
    try:
        sock = bind("::1", 0)
    except OSError:
        pytest.skip("no IPv6 loopback")
    listener = Listener(server, sock)
    listener.start()
    reader, writer = await asyncio.open_connection(*listener.address)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"0 http -")
    writer.close()
    listener.stop()
    await server.close()


async def test_an_upgrade_over_tls(serve: Any, serving: TlsFiles, authority: Any) -> None:
    class Shout(asyncio.Protocol):
        def __init__(self, transport: asyncio.Transport, leftover: bytes) -> None:
            self.transport = transport
            transport.write(leftover.upper())

        def data_received(self, data: bytes) -> None:
            self.transport.write(data.upper())

    async def handler(_: Request) -> Response:
        return Response(101, upgrade=Shout)

    running = await serve(handler, ServerTls(serving).context)
    client = await running.dial(ssl=trusting(authority), server_hostname="127.0.0.1")
    client.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nearly ")
    assert await client.head() == b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    assert await client.reader.readexactly(6) == b"EARLY "
    client.send(b"late")
    assert await client.reader.readexactly(4) == b"LATE"


async def test_a_connection_that_ended_leaves_nothing_to_the_collector(
    serve: Any, serving: TlsFiles, authority: Any
) -> None:
    running = await serve(who, ServerTls(serving).context)
    gc.disable()
    try:
        client = await running.dial(ssl=trusting(authority), server_hostname="127.0.0.1")
        client.send(GET)
        await client.answer()
        session = weakref.ref(next(iter(running.server.connections)).connection.tls)
        assert session() is not None
        await client.close()
        assert await running.server.wait_idle(10.0)
        await asyncio.sleep(0)
        assert session() is None
    finally:
        gc.enable()


@pytest.mark.skipif(verifies_itself(), reason="this Python hides its OpenSSL")
@pytest.mark.parametrize(("curve", "is_met"), [("prime256v1", True), ("secp384r1", False)])
async def test_key_exchanges_may_be_restricted(
    serve: Any, serving: TlsFiles, authority: Any, curve: str, is_met: bool
) -> None:
    running = await serve(who, ServerTls(replace(serving, groups=(4588, 23))).context)
    context = trusting(authority)
    context.set_ecdh_curve(curve)
    if is_met:
        assert await ask(running, context) == b"0 https -"
    else:
        with pytest.raises(ssl.SSLError):
            await ask(running, context)
