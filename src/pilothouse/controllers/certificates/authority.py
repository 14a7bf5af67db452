"""The authority that signs what was approved. Its files are read anew when they change."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID

from pilothouse.apis.certificates.x509 import check_signature
from pilothouse.controllers.certificates.requests import Requested
from pilothouse.net.odd_certificates import unreadable

_BACKDATED: Final = timedelta(minutes=5)
_SHORT: Final = timedelta(hours=8)
_LEAST_SECONDS: Final = 600.0
_KEY_USAGES: Final = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "key agreement": "key_agreement",
    "data encipherment": "data_encipherment",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED_USAGES: Final = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec end system": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft sgc": x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": x509.ObjectIdentifier("2.16.840.1.113730.4.1"),
}


class CannotSign(Exception):
    """The authority cannot sign a request; the message says why."""


@dataclass(frozen=True, slots=True)
class _Pair:
    modified: tuple[int, int]
    cert: x509.Certificate
    key: Any


class Authority:
    """Signs requests."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._cert_file, self._key_file = Path(cert_file), Path(key_file)
        self._pair = self._load()

    def sign(self, requested: Requested, seconds: float, now: datetime) -> bytes:
        """The certificate, in PEM. Raises CannotSign. Blocks: not for the event loop."""
        pair = self._current()
        if check_signature(requested.pkcs10):
            raise CannotSign("unable to verify certificate request signature")
        until = pair.cert.not_valid_after_utc
        if now >= until:
            raise CannotSign(f"refusing to sign a certificate that expired in the past: NotAfter={until}")
        lasts = timedelta(seconds=seconds)
        ends = min(now + (lasts if lasts < _SHORT else lasts - _BACKDATED), until)
        builder = (
            x509.CertificateBuilder()
            .subject_name(requested.pkcs10.subject)
            .issuer_name(pair.cert.subject)
            .public_key(requested.pkcs10.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(ends)
        )
        for extension, is_critical in _extensions(requested, pair.cert):
            builder = builder.add_extension(extension, critical=is_critical)
        algorithm = None if isinstance(pair.key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey) else hashes.SHA256()
        return builder.sign(pair.key, algorithm).public_bytes(serialization.Encoding.PEM)

    def _current(self) -> _Pair:
        if self._modified() != self._pair.modified:
            self._pair = self._load()
        return self._pair

    def _modified(self) -> tuple[int, int]:
        return os.stat(self._cert_file).st_mtime_ns, os.stat(self._key_file).st_mtime_ns

    def _load(self) -> _Pair:
        cert = x509.load_pem_x509_certificates(self._cert_file.read_bytes())[0]
        key = serialization.load_pem_private_key(self._key_file.read_bytes(), password=None)
        return _Pair(self._modified(), cert, key)


def lifetime(asked: int | None, most: float) -> float:
    """For how many seconds a certificate is to hold: what was asked for, within what the signer gives."""
    return most if asked is None else min(most, max(_LEAST_SECONDS, float(asked)))


def at(seconds: float) -> datetime:
    """A moment by the wall clock, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC)


def _extensions(requested: Requested, authority: x509.Certificate) -> list[tuple[x509.ExtensionType, bool]]:
    found: list[tuple[x509.ExtensionType, bool]] = []
    names = {_KEY_USAGES[usage] for usage in requested.usages if usage in _KEY_USAGES}
    if names:
        found.append((x509.KeyUsage(**{name: name in names for name in dict.fromkeys(_KEY_USAGES.values())}), True))
    extended = {_EXTENDED_USAGES[usage] for usage in requested.usages if usage in _EXTENDED_USAGES}
    if extended:
        found.append((x509.ExtendedKeyUsage(sorted(extended, key=lambda oid: oid.dotted_string)), False))
    found.append((x509.BasicConstraints(ca=False, path_length=None), True))
    try:
        own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        found.append((x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), False))
    except x509.ExtensionNotFound:
        pass
    try:
        alternatives = requested.pkcs10.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        found.append((alternatives.value, alternatives.critical))
    except x509.ExtensionNotFound:
        pass
    except unreadable() as error:
        raise CannotSign(f"unable to read the extensions of the certificate request: {error}") from None
    return found
