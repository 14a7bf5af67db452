"""Certificate authorities that a conversion webhook is trusted by: at least one certificate must be readable."""

from __future__ import annotations

from pilothouse.apis.certificates.pem import blocks
from pilothouse.apis.certificates.x509 import read_certificate


class AuthoritiesError(ValueError):
    """Nothing in the bundle is a certificate."""


def check_authorities(data: bytes) -> None:
    """Raise ``AuthoritiesError`` for a bundle without any certificate, saying what is wrong with its first part."""
    found = list(blocks(data))
    certificates = [block.content for block in found if block.label == "CERTIFICATE" and not block.headers]
    if any(read_certificate(content) is not None for content in certificates):
        return
    if certificates:
        raise AuthoritiesError("failed to parse certificate: x509: malformed certificate")
    if found and data.rstrip(b"\r\n").endswith(b"-----"):
        raise AuthoritiesError("no valid certificate authority data seen")
    raise AuthoritiesError("unable to parse bytes as PEM block")
