"""The keys of pod certificate requests that came without a stub, by deprecated fields of v1beta1.

Who asks for a certificate signs the uid of the pod to prove that the private key is at hand.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from pilothouse.apis.certificates.x509 import check_key
from pilothouse.machinery.field_errors import OMIT_VALUE, FieldError, Path, invalid, too_long

KEY: Final = Path("spec", "pkixPublicKey")
_PROOF: Final = Path("spec", "proofOfPossession")
_LIMIT: Final = 10 * 1024


def read_public_key(der: bytes) -> Any:
    """The key in a SubjectPublicKeyInfo, None for what is none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        return load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm):
        return None


def possession_errors(key: bytes, proof: bytes, pod_uid: str) -> list[FieldError]:
    """What is wrong with a key and the signature that was made with it; the first error ends it."""
    for path, value in ((KEY, key), (_PROOF, proof)):
        if len(value) > _LIMIT:
            return [too_long(path, "", _LIMIT)]
    shown = base64.b64encode(key).decode()
    public = read_public_key(key)
    if public is None:
        return [invalid(KEY, shown, "must be a valid PKIX-serialized public key")]
    quality, why = check_key(public)
    if why:
        # kube-apiserver takes P521 here too, and says otherwise.
        return [invalid(KEY, shown if quality is None else quality, why.replace("P256, P384, or P521", "P256 or P384"))]
    return (
        []
        if _is_proven(public, proof, pod_uid)
        else [invalid(_PROOF, OMIT_VALUE, "could not verify proof-of-possession signature")]
    )


def _is_proven(key: Any, proof: bytes, pod_uid: str) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    digest = hashes.SHA256()
    ways: tuple[Any, ...] = ()
    if isinstance(key, ec.EllipticCurvePublicKey):
        ways = (ec.ECDSA(digest),)
    elif isinstance(key, rsa.RSAPublicKey):
        ways = (padding.PSS(padding.MGF1(digest), padding.PSS.AUTO), digest)
    try:
        key.verify(proof, pod_uid.encode(), *ways)
    except InvalidSignature:
        return False
    return True
