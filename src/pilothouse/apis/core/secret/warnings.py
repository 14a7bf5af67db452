"""What is wrong with a TLS secret's certificate and key, in the words of Go's ``tls.X509KeyPair``."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_der_private_key

from pilothouse.apis.certificates.pem import blocks


def explain_key_pair(certificate: bytes, key: bytes) -> str:
    """Why the two do not make a key pair; nothing when they do."""
    found = list(blocks(certificate))
    chain = [block.content for block in found if block.label == "CERTIFICATE"]
    if not chain:
        return _no_certificate([block.label for block in found])
    found = list(blocks(key))
    private = next((block.content for block in found if block.label.endswith("PRIVATE KEY")), None)
    if private is None:
        return _no_key([block.label for block in found])
    return _mismatch(chain[0], private)


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
