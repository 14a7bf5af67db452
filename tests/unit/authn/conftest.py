"""Requests and certificates without a network."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.net.messages import Connection, Request
from pilothouse.net.request_head import parse_header_block, parse_request_line


class Transport:
    """What a Connection asks its transport for."""

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.1", 4711) if name == "peername" else None


@pytest.fixture
def make_request() -> Callable[..., Request]:
    def make(
        headers: str = "", path: str = "/", certificate: bytes | None = None, connection: Connection | None = None
    ) -> Request:
        if connection is None:
            connection = Connection(Transport())  # type: ignore[arg-type]
            connection._certificate = certificate
        lines = ["Host: x", *(line for line in headers.split("\n") if line)]
        block = parse_header_block("\r\n".join(lines).encode())
        return Request(connection, parse_request_line(f"GET {path} HTTP/1.1".encode()), block, True, None)

    return make


NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Authority:
    """A certificate authority that signs whatever a test wants."""

    def __init__(self, name: str = "ca", parent: "Authority | None" = None, **options: Any) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = build(name, (), self.key, parent, self, ca=True, **options)

    @property
    def pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding

        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, groups: tuple[str, ...] = (), **options: Any) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding

        key = ec.generate_private_key(ec.SECP256R1())
        return build(name, groups, key, self, None, ca=False, **options).public_bytes(Encoding.DER)


def build(
    name: str,
    groups: tuple[str, ...],
    key: Any,
    issuer: Authority | None,
    itself: Authority | None,
    *,
    ca: bool,
    usages: tuple[str, ...] | None = None,
    before: datetime.datetime = NOW - datetime.timedelta(days=1),
    after: datetime.datetime = NOW + datetime.timedelta(days=1),
    uids: tuple[str, ...] = (),
    path_length: int | None = None,
    critical: str = "",
) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID, ObjectIdentifier

    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    if name:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    attributes += [x509.NameAttribute(ObjectIdentifier("1.3.6.1.4.1.57683.2"), uid) for uid in uids]
    subject = x509.Name(attributes)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.certificate.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(before)
        .not_valid_after(after)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=path_length if ca else None), critical=True)
    )
    if usages is not None:
        oids = [ObjectIdentifier(usage) for usage in usages]
        builder = builder.add_extension(x509.ExtendedKeyUsage(oids), critical=False)
    if critical:
        unknown = x509.UnrecognizedExtension(ObjectIdentifier(critical), b"\x05\x00")
        builder = builder.add_extension(unknown, critical=True)
    signer = itself if issuer is None else issuer
    assert signer is not None
    return builder.sign(signer.key, hashes.SHA256())


@pytest.fixture
def new_authority() -> type[Authority]:
    return Authority
