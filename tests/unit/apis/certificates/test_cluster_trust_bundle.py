"""Cluster trust bundles."""

import ssl
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.certificates.index import STRATEGIES
from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

bundles = STRATEGIES["clustertrustbundles"]()


NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "n")])


START = datetime(2030, 1, 1, tzinfo=UTC)


KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(key: Any = KEY, *, ca: bool = False, hours: int = 24) -> str:
    builder = (
        x509.CertificateBuilder().subject_name(NAME).issuer_name(NAME).public_key(key.public_key()).serial_number(7)
    )
    builder = builder.not_valid_before(START).not_valid_after(START + timedelta(hours=hours))
    if ca:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def odd(old: bytes, new: bytes) -> str:
    """A certificate that cryptography does not read, or not whole."""
    der = ssl.PEM_cert_to_DER_cert(certificate(ca=True))
    assert der.count(old) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(old, new))


VERSION_SEVEN = odd(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x06")
CONSTRAINTS = b"\x06\x03\x55\x1d\x13\x01\x01\xff\x04\x05\x30\x03\x01\x01\xff"
ODD_NAMES = odd(CONSTRAINTS, b"\x06\x03\x55\x1d\x11\x01\x01\xff\x04\x05\x30\x03\xa3\x01\xff")


def bundle(text: str, signer: str = "", name: str = "b") -> Object:
    body = {"metadata": {"name": name}, "spec": {"trustBundle": text, "signerName": signer}}
    return decode(types.struct("certificates.v1.ClusterTrustBundle"), body)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (certificate(ca=True), []),
        ("", ["at least one trust anchor must be provided"]),
        (certificate(), ["entry 0 does not have the CA bit set"]),
        (certificate(ca=True) * 2, ["duplicate trust anchor (indices [0 1])"]),
        ("-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", ["entry 0 has bad block type: KEY"]),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ["entry 0 does not parse as X.509"]),
        (VERSION_SEVEN, ["entry 0 does not parse as X.509"]),
        (ODD_NAMES, ["entry 0 does not have the CA bit set"]),
        ("-----BEGIN CERTIFICATE-----\nA: b\n\nAAAA\n-----END CERTIFICATE-----\n", ["entry 0 has PEM block headers"]),
    ],
)
def test_trust_bundles(text: str, expected: list[str]) -> None:
    found = bundles.validate(Context(), bundle(text))
    assert [str(error) for error in found] == [
        f'spec.trustBundle: Invalid value: "<value omitted>": {why}' for why in expected
    ]


def test_a_bundle_is_named_after_its_signer_for_good() -> None:
    text = certificate(ca=True)
    assert bundles.validate(Context(), bundle(text, "example.com/s", "example.com:s:b")) == []
    found = bundles.validate_update(Context(), bundle(text, "example.com/s"), bundle(text))
    assert [str(error) for error in found] == [
        'metadata.name: Invalid value: "b": ClusterTrustBundle for signerName example.com/s must be named with prefix '
        "example.com:s:",
        'spec.signerName: Invalid value: "example.com/s": field is immutable',
    ]


def test_a_wrong_name_is_told_with_the_other_errors_of_metadata(kind: Any) -> None:
    named = {"name": "b", "labels": {"a b": ""}}
    body = {"metadata": named, "spec": {"signerName": "example.com/s", "trustBundle": certificate(ca=True)}}
    found = kind("certificates.k8s.io/v1", "clustertrustbundles").errors(body)
    assert [error.partition(":")[0] for error in found] == ["metadata.name", "metadata.labels"]


def test_an_untouched_bundle_is_not_read_again() -> None:
    assert bundles.validate_update(Context(), bundle("junk"), bundle("junk")) == []


@given(st.binary(max_size=300))
def test_reading_blocks_never_fails(data: bytes) -> None:
    for block in blocks(b"-----BEGIN A-----\n" + data + b"\n-----END A-----\n"):
        assert isinstance(block.content, bytes)
