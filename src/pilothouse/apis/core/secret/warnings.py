"""What is wrong with a TLS secret's certificate and key, in the words of Go's ``tls.X509KeyPair``."""

from __future__ import annotations

import base64
import re
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

_BLOCK: Final = re.compile(rb"-----BEGIN ([^\n-]+)-----[^\n]*\n(.*?)-----END \1-----", re.DOTALL)
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/=]")
_HEADER: Final = re.compile(rb"^[^\n:]+:[^\n]*\n", re.MULTILINE)


def explain_key_pair(certificate: bytes, key: bytes) -> str:
    """Why the two do not make a key pair; nothing when they do."""
    found = _blocks(certificate)
    chain = [data for name, data in found if name == "CERTIFICATE"]
    if not chain:
        return _no_certificate([name for name, _ in found])
    found = _blocks(key)
    private = next((data for name, data in found if name.endswith("PRIVATE KEY")), None)
    if private is None:
        return _no_key([name for name, _ in found])
    return _mismatch(chain[0], private)


def _blocks(text: bytes) -> list[tuple[str, bytes]]:
    found = []
    for match in _BLOCK.finditer(text):
        body = _NOT_BASE64.sub(b"", _HEADER.sub(b"", match[2]))
        try:
            found.append((match[1].decode("utf-8", "replace"), base64.b64decode(body, validate=True)))
        except ValueError:
            continue
    return found


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    listed = " ".join(skipped)
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{listed}]"
    )


def _no_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if len(skipped) == 1 and skipped[0] == "CERTIFICATE":
        return "tls: found a certificate rather than a key in the PEM for the private key"
    listed = " ".join(skipped)
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{listed}]"
    )


def _mismatch(certificate: bytes, key: bytes) -> str:
    try:
        public = x509.load_der_x509_certificate(certificate).public_key()
    except Exception:
        return "x509: malformed certificate"
    try:
        private = load_der_private_key(key, None)
    except Exception:
        return "tls: failed to parse private key"
    if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        return "tls: found unknown private key type in PKCS#8 wrapping"
    own = private.public_key()
    if not isinstance(public, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        return "tls: unknown public key algorithm"
    if type(own) is not type(public):
        return "tls: private key type does not match public key type"
    return "" if own == public else "tls: private key does not match public key"
