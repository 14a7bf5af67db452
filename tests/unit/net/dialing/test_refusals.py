"""Why a server's certificate was refused, as Go tells it."""

import asyncio
import ipaddress
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pilothouse.net.dialing import Dialer, DialError, Target, Tls

PREFIX = "tls: failed to verify certificate: x509: "
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """An authority that signs what it is asked to."""

    def __init__(self, folder: Path, key: Key | None = None, name: str = "an authority") -> None:
        self._folder, self.name = folder, subject(name)
        self._key = key or ec.generate_private_key(ec.SECP256R1())
        folder.mkdir()
        self.file = folder / "ca.crt"
        extension = x509.BasicConstraints(ca=True, path_length=None)
        now = datetime.now(UTC)
        made = self._builder(self.name, self._key, now).not_valid_after(now + timedelta(days=1))
        self._write(self.file, made.add_extension(extension, critical=True).sign(self._key, hashes.SHA256()))

    def _builder(self, name: x509.Name, key: Key, now: datetime) -> x509.CertificateBuilder:
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self.name).public_key(key.public_key())
        return builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=2))

    @staticmethod
    def _write(path: Path, certificate: x509.Certificate) -> None:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def serve(
        self,
        *names: str,
        common_name: str = "somebody",
        days: float = 1,
        usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
        extension: bytes = b"",
        mended: tuple[bytes, bytes] = (b"", b""),
    ) -> ssl.SSLContext:
        """A context of a server with these names, of which numbers are addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = self._builder(subject(common_name), key, now).not_valid_after(now + timedelta(days=days))
        general = [
            x509.IPAddress(ipaddress.ip_address(name)) if name[-1].isdigit() else x509.DNSName(name) for name in names
        ]
        if general:
            builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if extension:
            odd = x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.17"), extension)
            builder = builder.add_extension(odd, critical=False)
        made, private = self._folder / "server.crt", self._folder / "server.key"
        signed = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        made.write_text(ssl.DER_cert_to_PEM_cert(signed.replace(*mended)))
        plain = serialization.NoEncryption()
        private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made, private)
        return context


async def said(context: ssl.SSLContext, trusted: Path, name: str) -> str:
    """What connecting to such a server under a name says; empty if that works."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        target = Target("127.0.0.1", port, Tls(authorities_file=str(trusted), server_name=name))
        try:
            transport, _ = await Dialer().connect(target, asyncio.Protocol)
        except DialError as error:
            return str(error)
        transport.close()
        return ""


X400_NAME = b"\x30\x02\xa3\x00"
VERSION_SEVEN = (b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x06")


@pytest.mark.parametrize("mended", [(b"", b""), VERSION_SEVEN])
async def test_what_cannot_be_read_is_refused_as_well(tmp_path: Path, mended: tuple[bytes, bytes]) -> None:
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other", name="another authority")
    server = authority.serve(extension=X400_NAME, mended=mended)
    assert await said(server, other.file, "a") == PREFIX + "certificate signed by unknown authority"


MANY = tuple(f"n{number}.example.com" for number in range(100))


@pytest.mark.parametrize(
    ("names", "wanted", "words"),
    [
        (("a.example.com",), "a.example.com", ""),
        (("*.example.com",), "B.example.com", ""),
        (("10.0.0.1",), "10.0.0.1", ""),
        (
            ("a.example.com", "10.0.0.1", "b.example.com"),
            "c.example.com",
            "certificate is valid for a.example.com, b.example.com, not c.example.com",
        ),
        (("*.example.com",), "a.b.example.com", "certificate is valid for *.example.com, not a.b.example.com"),
        (
            ("a.example.com", "10.0.0.1", "fd00::1"),
            "10.0.0.2",
            "certificate is valid for 10.0.0.1, fd00::1, not 10.0.0.2",
        ),
        (
            ("a.example.com",),
            "10.0.0.2",
            "cannot validate certificate for 10.0.0.2 because it doesn't contain any IP SANs",
        ),
        (("10.0.0.1",), "a.example.com", "certificate is not valid for any names, but wanted to match a.example.com"),
        ((), "somebody", "certificate relies on legacy Common Name field, use SANs instead"),
        ((), "nobody", "certificate is not valid for any names, but wanted to match nobody"),
        (MANY, "other", "certificate is valid for 100 names, but none matched other"),
    ],
)
async def test_names(tmp_path: Path, names: tuple[str, ...], wanted: str, words: str) -> None:
    authority = Authority(tmp_path / "ca")
    assert await said(authority.serve(*names), authority.file, wanted) == (PREFIX + words if words else "")


async def test_times(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    words = await said(authority.serve("a", days=-1), authority.file, "a")
    assert words.startswith(
        f"{PREFIX}certificate has expired or is not yet valid: current time {datetime.now(UTC):%Y-}"
    )
    assert f"Z is after {datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT}" in words


async def test_what_is_wrong_first_is_told(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other", name="another authority")
    assert "has expired" in await said(authority.serve("a", days=-1), other.file, "b")
    assert await said(authority.serve("a"), other.file, "b") == PREFIX + "certificate is valid for a, not b"
    assert await said(authority.serve("a"), other.file, "a") == PREFIX + "certificate signed by unknown authority"
    client = authority.serve("a", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    assert await said(client, authority.file, "a") == PREFIX + "certificate specifies an incompatible key usage"


@pytest.mark.parametrize(
    ("make", "failure"),
    [
        (lambda: ec.generate_private_key(ec.SECP256R1()), "x509: ECDSA verification failure"),
        (lambda: rsa.generate_private_key(65537, 2048), "crypto/rsa: verification error"),
    ],
)
async def test_an_authority_that_was_made_anew(tmp_path: Path, make: Callable[[], Key], failure: str) -> None:
    before, after = Authority(tmp_path / "before", make()), Authority(tmp_path / "after", make())
    hint = f'possibly because of "{failure}" while trying to verify candidate authority certificate "an authority"'
    words = f"{PREFIX}certificate signed by unknown authority ({hint})"
    assert await said(before.serve("a"), after.file, "a") == words
