"""Why we refused the certificate of a server that we connected to, in the words and the order of Go's ``crypto/x509``.

OpenSSL looks for the authority first and Go last, and Go says for which names and times the certificate is good. So the
certificate is looked at once more, after it was refused; whether it is refused does not depend on that.
"""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pilothouse.net.odd_certificates import unreadable

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, GeneralName

_PREFIX: Final = "tls: failed to verify certificate: x509: "
_UNKNOWN_AUTHORITY: Final = frozenset({2, 7, 18, 19, 20, 21})
_EXPIRED: Final = frozenset({9, 10})
_INCOMPATIBLE_USAGE: Final = 26
_MOST_NAMES: Final = 100  # more are counted instead of named


@dataclass(frozen=True)
class Presented:
    """What the other side showed, and what was trusted."""

    chain: tuple[bytes, ...]
    context: ssl.SSLContext


class RefusedCertificate(ConnectionError):
    """A handshake that we ended because of the certificate of the other side."""

    def __init__(self, reason: ssl.SSLCertVerificationError, presented: Presented) -> None:
        super().__init__(str(reason))
        self.reason, self.presented = reason, presented


def refuse(reason: ssl.SSLCertVerificationError, tls: ssl.SSLObject) -> RefusedCertificate:
    """What is to be raised, with the certificates that were shown."""
    return RefusedCertificate(reason, Presented(tuple(_shown(tls)), tls.context))


def explain_refusal(refused: RefusedCertificate, host: str, now: datetime) -> str:
    """What Go says of it; less where the certificate cannot be read."""
    try:
        words = _explain(refused, host, now)
    except unreadable():
        words = ""
    return _PREFIX + (words or _explain_code(refused.reason))


def _explain_code(reason: ssl.SSLCertVerificationError) -> str:
    """What OpenSSL's reason alone says."""
    if reason.verify_code in _EXPIRED:
        return "certificate has expired or is not yet valid"
    if reason.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    return str(reason.verify_message or reason)


def _explain(refused: RefusedCertificate, host: str, now: datetime) -> str:
    from cryptography import x509  # a slow import that only servers need whose certificate is refused

    code, chain = refused.reason.verify_code, refused.presented.chain
    if chain:
        leaf = x509.load_der_x509_certificate(chain[0])
        found = _explain_time(leaf, now) or _explain_name(_Names(leaf), host)
        if found:
            return found
    if code == _INCOMPATIBLE_USAGE:
        return "certificate specifies an incompatible key usage"
    if code not in _UNKNOWN_AUTHORITY:
        return ""
    return "certificate signed by unknown authority" + (_hint(leaf, refused) if len(chain) == 1 else "")


def _explain_time(leaf: Certificate, now: datetime) -> str:
    words = f"certificate has expired or is not yet valid: current time {_rfc3339(now)} is"
    if now < leaf.not_valid_before_utc:
        return f"{words} before {_rfc3339(leaf.not_valid_before_utc)}"
    return f"{words} after {_rfc3339(leaf.not_valid_after_utc)}" if now > leaf.not_valid_after_utc else ""


class _Names:
    """For whom a certificate is."""

    def __init__(self, leaf: Certificate) -> None:
        self._leaf = leaf

    @cached_property
    def alternatives(self) -> tuple[GeneralName, ...] | None:
        """None where there is no such extension."""
        from cryptography import x509

        try:
            return tuple(self._leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
        except x509.ExtensionNotFound:
            return None

    @property
    def hosts(self) -> list[str]:
        from cryptography.x509 import DNSName

        return [name.value for name in self.alternatives or () if isinstance(name, DNSName)]

    @property
    def addresses(self) -> list[str]:
        from cryptography.x509 import IPAddress

        return [str(name.value) for name in self.alternatives or () if isinstance(name, IPAddress)]

    @property
    def common_name(self) -> str:
        return _common_name(self._leaf)


def _explain_name(names: _Names, host: str) -> str:
    """Empty where it is for this host."""
    address = _address(host)
    good = names.hosts if address is None else names.addresses
    if address in good if address is not None else any(_matches(name, host) for name in good):
        return ""
    if names.alternatives is None and _matches(names.common_name, host):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if address is not None and not good:
        return f"cannot validate certificate for {address} because it doesn't contain any IP SANs"
    if not good:
        return f"certificate is not valid for any names, but wanted to match {host}"
    if len(good) >= _MOST_NAMES:
        what = "names" if address is None else "IP SANs"
        return f"certificate is valid for {len(good)} {what}, but none matched {host}"
    return f"certificate is valid for {', '.join(good)}, not {host}"


def _hint(leaf: Certificate, refused: RefusedCertificate) -> str:
    """An authority of the right name that has another key, as after it was made anew."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    issuer = leaf.issuer.public_bytes()
    for trusted in refused.presented.context.get_ca_certs(binary_form=True):
        if issuer not in trusted:
            continue
        authority = x509.load_der_x509_certificate(trusted)
        try:
            leaf.verify_directly_issued_by(authority)
        except InvalidSignature:
            name = _common_name(authority) or f"serial:{authority.serial_number}"
            what = f'"{_explain_signature(authority)}" while trying to verify candidate authority certificate "{name}"'
            return f" (possibly because of {what})"
        except unreadable(TypeError):
            continue
    return ""


def _explain_signature(authority: Certificate) -> str:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    key = authority.public_key()
    if isinstance(key, RSAPublicKey):
        return "crypto/rsa: verification error"
    kind = "ECDSA" if isinstance(key, EllipticCurvePublicKey) else "Ed25519"
    return f"x509: {kind} verification failure"


def _common_name(certificate: Certificate) -> str:
    from cryptography.x509.oid import NameOID

    return "".join(str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[-1:])


def _matches(pattern: str, host: str) -> bool:
    """Whether a name of a certificate, of which the first label may be ``*``, is for this host."""
    wanted, parts = pattern.lower().split("."), host.lower().removesuffix(".").split(".")
    return bool(pattern) and len(wanted) == len(parts) and wanted[0] in ("*", parts[0]) and wanted[1:] == parts[1:]


def _address(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(tls: Any) -> list[bytes]:
    """The chain in DER, to which Python has a public way from 3.13 on."""
    if hasattr(tls, "get_unverified_chain"):
        return list(tls.get_unverified_chain())
    find = getattr(getattr(tls, "_sslobj", None), "get_unverified_chain", list)
    return [ssl.PEM_cert_to_DER_cert(shown.public_bytes()) for shown in find() or ()]
