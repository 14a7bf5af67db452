"""Keys of pod certificate requests that came without a stub."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x448
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pilothouse.apis.certificates.possession import possession_errors

UID = b"4f1c"
DIGEST = hashes.SHA256()
PSS = padding.PSS(padding.MGF1(DIGEST), padding.PSS.DIGEST_LENGTH)
RSA = rsa.generate_private_key(65537, 3072)
P521 = ec.generate_private_key(ec.SECP521R1())
EDWARDS = ed25519.Ed25519PrivateKey.generate()


def public(key: Any) -> bytes:
    made: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return made


@pytest.mark.parametrize(
    ("key", "proof"),
    [
        (RSA, RSA.sign(UID, PSS, DIGEST)),
        (P521, P521.sign(UID, ec.ECDSA(DIGEST))),
        (EDWARDS, EDWARDS.sign(UID)),
    ],
    ids=["RSA", "P521", "Ed25519"],
)
def test_who_has_the_key_signs_the_uid_of_the_pod(key: Any, proof: bytes) -> None:
    assert possession_errors(public(key), proof, UID.decode()) == []
    for uid, signature in (("other", proof), (UID.decode(), b"none")):
        [found] = possession_errors(public(key), signature, uid)
        assert str(found) == "spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"


WEAK, ODD = (ec.generate_private_key(ec.SECP224R1()), x448.X448PrivateKey.generate())


@pytest.mark.parametrize(
    ("key", "proof", "expected"),
    [
        (b"a" * 10241, b"", "spec.pkixPublicKey: Too long: may not be more than 10240 bytes"),
        (b"", b"a" * 10241, "spec.proofOfPossession: Too long: may not be more than 10240 bytes"),
        (b"\0\0\0", b"a", 'spec.pkixPublicKey: Invalid value: "AAAA": must be a valid PKIX-serialized public key'),
        (
            public(WEAK),
            b"a",
            'spec.pkixPublicKey: Invalid value: "curve P-224": elliptic public keys must use curve P256 or P384',
        ),
        (
            public(ODD),
            b"a",
            f'spec.pkixPublicKey: Invalid value: "{base64.b64encode(public(ODD)).decode()}": unknown public key type; '
            "supported types are Ed25519, ECDSA, and RSA",
        ),
    ],
    ids=["long key", "long proof", "no key", "curve", "kind of key"],
)
def test_what_is_no_usable_key_is_refused(key: bytes, proof: bytes, expected: str) -> None:
    assert [str(error) for error in possession_errors(key, proof, UID.decode())] == [expected]
