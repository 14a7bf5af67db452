"""A running server and raw clients on loopback, for byte-level tests."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilothouse.net.listener import Listener, bind
from pilothouse.net.messages import Handler
from pilothouse.net.server import HttpServer, Limits


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
    return {"uvloop": uvloop.new_event_loop}


class Client:
    """A raw connection; `roundtrip` sends bytes, then reads until the server closes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def answer(self) -> tuple[bytes, bytes]:
        """Head and body of the next answer that has a Content-Length or is chunked."""
        head = await self.head()
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length: "):
                return head, await self.reader.readexactly(int(line[16:]))
            if line == b"transfer-encoding: chunked":
                return head, await self._chunks()
        return head, b""

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def roundtrip(self, data: bytes) -> bytes:
        self.send(data)
        return await self.rest()

    async def rest(self) -> bytes:
        return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class Running:
    """A server with its listener, and connections to it."""

    def __init__(self, server: HttpServer, listener: Listener) -> None:
        self.server = server
        self.listener = listener
        self.clients: list[Client] = []

    async def dial(self, **options: Any) -> Client:
        client = Client(*await asyncio.open_connection(*self.listener.address, limit=1 << 16, **options))
        self.clients.append(client)
        return client

    async def exchange(self, data: bytes) -> bytes:
        return await (await self.dial()).roundtrip(data)


Serve = Callable[..., Awaitable[Running]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    running: list[Running] = []

    async def start(
        handler: Handler, tls: Callable[[], ssl.SSLContext] | None = None, limits: Limits | None = None, **options: Any
    ) -> Running:
        server = HttpServer(handler, limits=limits, **options)
        listener = Listener(server, bind("127.0.0.1", 0), tls)
        listener.start()
        running.append(Running(server, listener))
        return running[-1]

    before = asyncio.all_tasks()
    yield start
    for one in running:
        for client in one.clients:
            await client.close()
        one.listener.stop()
        await one.listener.wait_stopped()
        await one.server.close()
        assert not one.server.connections
    leaked = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not leaked, leaked


class Authority:
    """Makes certificates."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self.name, self.key, None, authority=True)
        self.file = self._write(f"{name}.crt", self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *hosts: str) -> tuple[str, str]:
        """Certificate and key files for a name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, hosts, authority=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        return self._write(f"{name}.pem", pem), self._write(f"{name}.key", private)

    def _write(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, hosts: tuple[str, ...] | None, *, authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            # Python 3.13 and later want what RFC 5280 wants of certificates.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if authority:
            builder = builder.add_extension(_SIGNING, critical=True)
        if hosts:
            names: list[x509.GeneralName] = [
                x509.IPAddress(ipaddress.ip_address(h)) if h[0].isdigit() else x509.DNSName(h) for h in hosts
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self.key, hashes.SHA256())


_SIGNING = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"), "serving-ca")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other"), "other-ca")
