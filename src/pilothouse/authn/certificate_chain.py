"""Verifying a client's certificate against a set of authorities, by the rules of Go's crypto/x509.

A chain is built from the leaf through certificates the client sent to an authority. Every certificate in it must be
valid now, allow client authentication where it limits its use, and be signed by the next, which must be a
certificate authority. The common name proves nothing by itself: names are not checked here. Bounded work: the depth
of a chain and the number of signatures tried are limited.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pilothouse.net.odd_certificates import unreadable

if TYPE_CHECKING:
    from cryptography import x509

MAX_DEPTH = 8
MAX_SIGNATURES = 100
_WEAK_HASHES = frozenset({"md5", "sha1", "md2", "md4"})


class InvalidCertificate(Exception):
    """The certificate is not one of ours; the text says why."""


class Authorities:
    """The certificates of a CA file, filed by subject."""

    def __init__(self, certificates: Iterable[x509.Certificate]) -> None:
        self.certificates = tuple(certificates)
        self._by_subject = by_subject(self.certificates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Authorities) and self.certificates == other.certificates

    def __hash__(self) -> int:
        return hash(self.certificates)

    def contains(self, certificate: x509.Certificate) -> bool:
        return certificate in self.certificates

    def issuers_of(self, certificate: x509.Certificate) -> Sequence[x509.Certificate]:
        return self._by_subject.get(certificate.issuer.public_bytes(), ())


def parse_authorities(pem: bytes) -> Authorities:
    """Read a PEM bundle. Raises ``ValueError`` if it holds no certificate."""
    from cryptography import x509

    if b"-----BEGIN CERTIFICATE-----" not in pem:
        raise ValueError("data does not contain any valid RSA or ECDSA certificates")
    return Authorities(x509.load_pem_x509_certificates(pem))


def by_subject(certificates: Iterable[x509.Certificate]) -> dict[bytes, list[x509.Certificate]]:
    """Certificates under the encoding of their subject."""
    filed: dict[bytes, list[x509.Certificate]] = {}
    for certificate in certificates:
        filed.setdefault(certificate.subject.public_bytes(), []).append(certificate)
    return filed


def verify_chain(
    leaf: x509.Certificate, between: Iterable[x509.Certificate], roots: Authorities, now: datetime.datetime
) -> list[x509.Certificate]:
    """The chain from the leaf to a root. Raises InvalidCertificate."""
    _check_validity(leaf, now)
    _check_critical_extensions(leaf)
    if roots.contains(leaf):
        chain: list[x509.Certificate] | None = [leaf]
    else:
        chain = _Search(by_subject(between), roots, now).extend([leaf])
    if chain is None:
        raise InvalidCertificate("x509: certificate signed by unknown authority")
    if not all(_allows_client_authentication(certificate) for certificate in chain):
        raise InvalidCertificate("x509: certificate specifies an incompatible key usage")
    return chain


class _Search:
    """Depth-first search for a chain."""

    def __init__(
        self, between: dict[bytes, list[x509.Certificate]], roots: Authorities, now: datetime.datetime
    ) -> None:
        self._between = between
        self._roots = roots
        self._now = now
        self._signatures = MAX_SIGNATURES
        self._first_error: InvalidCertificate | None = None

    def extend(self, chain: list[x509.Certificate]) -> list[x509.Certificate] | None:
        found = self._step(chain)
        if found is None and self._first_error is not None:
            raise self._first_error
        return found

    def _step(self, chain: list[x509.Certificate]) -> list[x509.Certificate] | None:
        child = chain[-1]
        for root in self._roots.issuers_of(child):
            if self._accepts(chain, root):
                return [*chain, root]
        if len(chain) >= MAX_DEPTH:
            return None
        for issuer in self._between.get(child.issuer.public_bytes(), ()):
            if issuer not in chain and self._accepts(chain, issuer):
                found = self._step([*chain, issuer])
                if found is not None:
                    return found
        return None

    def _accepts(self, chain: list[x509.Certificate], issuer: x509.Certificate) -> bool:
        self._signatures -= 1
        if self._signatures < 0:
            raise InvalidCertificate("x509: signature check attempts limit reached while verifying certificate chain")
        try:
            _check_signature(chain[-1], issuer)
            _check_validity(issuer, self._now)
            _check_critical_extensions(issuer)
            _check_authority(chain, issuer)
        except InvalidCertificate as error:
            self._first_error = self._first_error or error
            return False
        return True


def _check_signature(child: x509.Certificate, issuer: x509.Certificate) -> None:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        hash_algorithm = child.signature_hash_algorithm
        if hash_algorithm is not None and hash_algorithm.name in _WEAK_HASHES:
            raise InvalidCertificate("x509: cannot verify signature: insecure algorithm")
        child.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        raise InvalidCertificate("x509: certificate signed by unknown authority") from None


def _check_validity(certificate: x509.Certificate, now: datetime.datetime) -> None:
    if now < certificate.not_valid_before_utc:
        when = certificate.not_valid_before_utc
        raise InvalidCertificate(
            "x509: certificate has expired or is not yet valid: "
            f"current time {_rfc3339(now)} is before {_rfc3339(when)}"
        )
    if now > certificate.not_valid_after_utc:
        when = certificate.not_valid_after_utc
        raise InvalidCertificate(
            f"x509: certificate has expired or is not yet valid: current time {_rfc3339(now)} is after {_rfc3339(when)}"
        )


def _check_authority(chain: list[x509.Certificate], issuer: x509.Certificate) -> None:
    from cryptography import x509

    extensions = _extensions(issuer)
    constraints = extensions.get(x509.BasicConstraints.oid)
    usage = extensions.get(x509.KeyUsage.oid)
    if issuer.version is x509.Version.v3 and constraints is None:
        raise InvalidCertificate("x509: invalid signature: parent certificate cannot sign this kind of certificate")
    if constraints is not None and not constraints.ca:
        raise InvalidCertificate("x509: certificate is not authorized to sign other certificates")
    if usage is not None and not usage.key_cert_sign:
        raise InvalidCertificate("x509: invalid signature: parent certificate cannot sign this kind of certificate")
    # Authorities between the issuer and the leaf; those that issued themselves do not count.
    between = sum(1 for certificate in chain[1:] if certificate.issuer != certificate.subject)
    if constraints is not None and constraints.path_length is not None and between > constraints.path_length:
        raise InvalidCertificate("x509: too many intermediates for path length constraint")
    if x509.NameConstraints.oid in extensions and x509.SubjectAlternativeName.oid in _extensions(chain[0]):
        raise InvalidCertificate("x509: issuer has name constraints but leaf doesn't satisfy them")


def _check_critical_extensions(certificate: x509.Certificate) -> None:
    from cryptography import x509

    known = (
        x509.BasicConstraints.oid,
        x509.KeyUsage.oid,
        x509.ExtendedKeyUsage.oid,
        x509.SubjectAlternativeName.oid,
        x509.NameConstraints.oid,
        x509.CertificatePolicies.oid,
        x509.PolicyConstraints.oid,
        x509.InhibitAnyPolicy.oid,
        x509.SubjectKeyIdentifier.oid,
        x509.AuthorityKeyIdentifier.oid,
    )
    try:
        unhandled = any(extension.critical and extension.oid not in known for extension in certificate.extensions)
    except unreadable() as error:
        raise InvalidCertificate(f"x509: malformed extension: {error}") from None
    if unhandled:
        raise InvalidCertificate("x509: unhandled critical extension")


def _allows_client_authentication(certificate: x509.Certificate) -> bool:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    usages = _extensions(certificate).get(x509.ExtendedKeyUsage.oid)
    if usages is None:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usages


def _extensions(certificate: x509.Certificate) -> dict[x509.ObjectIdentifier, Any]:
    return {extension.oid: extension.value for extension in certificate.extensions}


def _rfc3339(when: datetime.datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
