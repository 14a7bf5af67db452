"""What validation asks of X.509 structures. The library that reads them is loaded when the first one comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pilothouse.apis.certificates.asn1 import describe_error
from pilothouse.apis.certificates.pem import blocks
from pilothouse.net.odd_certificates import unreadable

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, CertificateSigningRequest


def read_request(der: bytes) -> CertificateSigningRequest | None:
    """A PKCS#10 request, None for what is none."""
    from cryptography.x509 import load_der_x509_csr

    try:
        return load_der_x509_csr(der)
    except unreadable():
        return None


def read_certificate(der: bytes) -> Certificate | None:
    """A certificate, None for what is none."""
    from cryptography.x509 import load_der_x509_certificate

    try:
        return load_der_x509_certificate(der)
    except unreadable():
        return None


def check_request(pem: bytes) -> str:
    """What is wrong with a PEM-encoded signing request; empty when nothing is."""
    first = next(blocks(pem), None)
    if first is None or first.label != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    request = read_request(first.content)
    if request is None:
        return describe_error(first.content)
    return check_signature(request)


def check_signature(request: CertificateSigningRequest) -> str:
    """Whether a request is signed with its own key. As in Go, SHA-1 will do for requests, unlike for certificates."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519

    try:
        digest = request.signature_hash_algorithm
        if digest is not None and digest.name == "md5":
            return "x509: cannot verify signature: insecure algorithm MD5-RSA"
        key: Any = request.public_key()
        _verify(request, key)
    except InvalidSignature:
        pass
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"
    else:
        return ""
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "x509: ECDSA verification failure"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "x509: Ed25519 verification failure"
    return "crypto/rsa: verification error"


def _verify(request: CertificateSigningRequest, key: Any) -> None:
    """Raises InvalidSignature, and other errors for keys and algorithms that do not go together."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    digest: Any = request.signature_hash_algorithm
    padding: Any = request.signature_algorithm_parameters
    signature, signed = request.signature, request.tbs_certrequest_bytes
    if isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, signed, padding, digest)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, signed, ec.ECDSA(digest))
    else:
        key.verify(signature, signed)


def check_certificates(pem: bytes) -> str:
    """What is wrong with issued certificates; empty content is fine."""
    if not pem:
        return ""
    found = False
    for block in blocks(pem):
        if block.label != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block.label}"'
        if block.headers:
            return "no PEM block headers are permitted"
        found = True
        if not block.content:
            return "found CERTIFICATE PEM block containing 0 certificates"
        if read_certificate(block.content) is None:
            return "x509: malformed certificate"
    return "" if found else "must contain at least one CERTIFICATE PEM block"


def check_trust_anchors(pem: bytes) -> Iterator[str]:
    """What is wrong with a trust bundle."""
    seen: dict[bytes, list[int]] = {}
    errs = []
    for position, block in enumerate(blocks(pem)):
        error = _anchor_error(block.label, block.headers, block.content)
        if error:
            errs.append(f"entry {position} {error}")
        else:
            seen.setdefault(block.content, []).append(position)
    if errs:
        yield from errs
        return
    if not seen:
        yield "at least one trust anchor must be provided"
    for positions in seen.values():
        if len(positions) > 1:
            yield f"duplicate trust anchor (indices [{' '.join(map(str, positions))}])"


def _anchor_error(label: str, headers: int, content: bytes) -> str:
    if label != "CERTIFICATE":
        return f"has bad block type: {label}"
    if headers:
        return "has PEM block headers"
    certificate = read_certificate(content)
    if certificate is None:
        return "does not parse as X.509"
    return "" if is_authority(certificate) else "does not have the CA bit set"


def is_authority(certificate: Certificate) -> bool:
    """Whether the certificate may sign others."""
    from cryptography.x509 import BasicConstraints, ExtensionNotFound

    try:
        return certificate.extensions.get_extension_for_class(BasicConstraints).value.ca
    except unreadable(ExtensionNotFound):
        return False


def check_key(key: Any) -> tuple[str | None, str]:
    """(what is shown of a key, why it is refused); both empty for one that may be used."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    if isinstance(key, ed25519.Ed25519PublicKey):
        return None, ""
    if isinstance(key, ec.EllipticCurvePublicKey):
        if key.curve.name in ("secp256r1", "secp384r1", "secp521r1"):
            return None, ""
        return (
            f"curve {_CURVES.get(key.curve.name, key.curve.name)}",
            "elliptic public keys must use curve P256, P384, or P521",
        )
    if isinstance(key, rsa.RSAPublicKey):
        bits = (key.key_size + 7) // 8 * 8
        if bits in (3072, 4096):
            return None, ""
        return f"{bits}-bit modulus", "RSA keys must have modulus size 3072 or 4096"
    return None, "unknown public key type; supported types are Ed25519, ECDSA, and RSA"


_CURVES = {"secp224r1": "P-224"}
