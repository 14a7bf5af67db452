"""Signed tokens (JWS in compact form) and public keys (JWK), the small part of JOSE that an API server needs.

RSA and elliptic curves only. A key is used only with algorithms of its own type, so a token cannot choose how it is
checked; `none` and shared-secret algorithms do not exist here. Errors carry the texts of kube-apiserver's library.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
    PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

MAX_TOKEN = 256 * 1024
ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*").fullmatch
_CURVES = {
    "secp256r1": ("ES256", "P-256", 32),
    "secp384r1": ("ES384", "P-384", 48),
    "secp521r1": ("ES512", "P-521", 66),
}
_RSA_ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


class InvalidToken(Exception):
    """The token is not what it claims to be."""


class SignedToken(NamedTuple):
    """A token taken apart; nothing in it may be trusted before ``verify``."""

    header: Mapping[str, Any]
    payload: bytes
    signature: bytes
    signed: bytes


class VerificationKey(NamedTuple):
    """A public key and the id by which tokens name it."""

    id: str
    key: PublicKey


def parse_token(token: str) -> SignedToken | None:
    """Take a compact token apart; None if it is not one."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN:
        return None
    try:
        head, payload, signature = (decode_base64url(part) for part in parts)
        header = orjson.loads(head)
    except ValueError:
        return None
    if not isinstance(header, dict):
        return None
    return SignedToken(header, payload, signature, f"{parts[0]}.{parts[1]}".encode())


def claims_of(token: SignedToken) -> dict[str, Any] | None:
    """The payload as claims; None if it is no JSON object."""
    try:
        claims = orjson.loads(token.payload)
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


def verify(token: SignedToken, key: PublicKey) -> None:
    """Check the signature. Raises InvalidToken."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import rsa

    algorithm = token.header.get("alg")
    if token.header.get("crit"):
        raise InvalidToken("go-jose/go-jose: unsupported crit header")
    try:
        if isinstance(key, rsa.RSAPublicKey):
            _verify_rsa(token, key, algorithm)
        else:
            _verify_curve(token, key, algorithm)
    except InvalidSignature:
        raise InvalidToken("go-jose/go-jose: error in cryptographic primitive") from None


def _verify_rsa(token: SignedToken, key: rsa.RSAPublicKey, algorithm: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric import padding

    if algorithm not in _RSA_ALGORITHMS:
        raise InvalidToken("go-jose/go-jose: unknown/unsupported algorithm")
    hash_algorithm = _hash(algorithm)
    if algorithm.startswith("RS"):
        key.verify(token.signature, token.signed, padding.PKCS1v15(), hash_algorithm)
    else:
        scheme = padding.PSS(padding.MGF1(hash_algorithm), padding.PSS.AUTO)
        key.verify(token.signature, token.signed, scheme, hash_algorithm)


def _verify_curve(token: SignedToken, key: ec.EllipticCurvePublicKey, algorithm: Any) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    expected, _, size = _curve(key)
    if algorithm != expected:
        raise InvalidToken("go-jose/go-jose: unknown/unsupported algorithm")
    if len(token.signature) != 2 * size:
        have = len(token.signature)
        raise InvalidToken(f"go-jose/go-jose: invalid signature size, have {have} bytes, wanted {2 * size}")
    r, s = (int.from_bytes(part) for part in (token.signature[:size], token.signature[size:]))
    key.verify(utils.encode_dss_signature(r, s), token.signed, ec.ECDSA(_hash(expected)))


class Signer:
    """Signs claims with a private key, naming it by its id."""

    def __init__(self, key: PrivateKey) -> None:
        from cryptography.hazmat.primitives.asymmetric import rsa

        self._key = key
        self.id = key_id(key.public_key())
        self.algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else _curve(key.public_key())[0]
        self._head = encode_base64url(orjson.dumps({"alg": self.algorithm, "kid": self.id}))

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A compact token with these claims."""
        signed = f"{self._head}.{encode_base64url(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))}"
        return f"{signed}.{encode_base64url(self._signature(signed.encode()))}"

    async def sign_claims(self, claims: Mapping[str, Any]) -> str:
        """The same for those who do not know that nothing here waits."""
        return self.sign(claims)

    def _signature(self, signed: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        hash_algorithm = _hash(self.algorithm)
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(signed, padding.PKCS1v15(), hash_algorithm)
        r, s = utils.decode_dss_signature(self._key.sign(signed, ec.ECDSA(hash_algorithm)))
        size = _curve(self._key.public_key())[2]
        return r.to_bytes(size) + s.to_bytes(size)


def key_id(key: PublicKey) -> str:
    """The id of a key: a digest of its encoding, from which the key cannot be had."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encode_base64url(hashlib.sha256(der).digest())


def load_private_key(pem: bytes) -> PrivateKey:
    """The first private key of a PEM file. Raises ``ValueError``."""
    for block in _PEM_BLOCK.finditer(pem):
        key = _private_key(block[0])
        if key is not None:
            return key
    raise ValueError("data does not contain a valid RSA or ECDSA private key")


def load_public_keys(pem: bytes) -> list[VerificationKey]:
    """Every public key, certificate's key and private key's public half of a PEM file. Raises ``ValueError``."""
    keys: list[VerificationKey] = []
    for block in _PEM_BLOCK.finditer(pem):
        private = _private_key(block[0])
        key = private.public_key() if private is not None else _public_key(block[0])
        if key is not None:
            keys.append(VerificationKey(key_id(key), key))
    if not keys:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return keys


def _private_key(pem: bytes) -> PrivateKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else None


def _public_key(pem: bytes) -> PublicKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        if b"-----BEGIN CERTIFICATE-----" in pem:
            from cryptography import x509  # much, and for this alone

            key: Any = x509.load_pem_x509_certificate(pem).public_key()
        else:
            key = load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else None


def load_pkix_key(der: bytes) -> PublicKey:
    """A public key by its DER encoding. Raises ``ValueError``."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(der)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the key is malformed: {error}") from None
    if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
        raise ValueError("only RSA and ECDSA keys are supported")
    return key


def as_jwk(key: VerificationKey) -> dict[str, str]:
    """A public key as a JSON Web Key."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    if isinstance(key.key, rsa.RSAPublicKey):
        numbers = key.key.public_numbers()
        n, e = _integer(numbers.n), _integer(numbers.e)
        return {"use": "sig", "kty": "RSA", "kid": key.id, "alg": "RS256", "n": n, "e": e}
    algorithm, curve, size = _curve(key.key)
    point = key.key.public_numbers()
    x, y = (encode_base64url(value.to_bytes(size)) for value in (point.x, point.y))
    return {"use": "sig", "kty": "EC", "kid": key.id, "crv": curve, "alg": algorithm, "x": x, "y": y}


def from_jwk(jwk: Mapping[str, Any]) -> VerificationKey | None:
    """A JSON Web Key as a public key; None for a kind of key that is not supported. Raises ``ValueError``."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    identity = str(jwk.get("kid", ""))
    if jwk.get("kty") == "RSA":
        e, n = _number(jwk, "e"), _number(jwk, "n")
        return VerificationKey(identity, rsa.RSAPublicNumbers(e, n).public_key())
    if jwk.get("kty") == "EC":
        curves = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
        curve = curves.get(str(jwk.get("crv")))
        if curve is None:
            return None
        numbers = ec.EllipticCurvePublicNumbers(_number(jwk, "x"), _number(jwk, "y"), curve)
        return VerificationKey(identity, numbers.public_key())
    return None


def encode_base64url(data: bytes) -> str:
    """URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """The opposite; strict about the alphabet. Raises ``ValueError``."""
    if not _BASE64URL(text) or len(text) % 4 == 1:
        raise ValueError("illegal base64 data")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _hash(algorithm: str) -> Any:
    from cryptography.hazmat.primitives import hashes

    return {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}[algorithm[2:]]


def _curve(key: ec.EllipticCurvePublicKey) -> tuple[str, str, int]:
    try:
        return _CURVES[key.curve.name]
    except KeyError:
        raise ValueError("unknown private key curve, must be 256, 384, or 521") from None


def _integer(value: int) -> str:
    return encode_base64url(value.to_bytes((value.bit_length() + 7) // 8))


def _number(jwk: Mapping[str, Any], name: str) -> int:
    value = jwk.get(name)
    if not isinstance(value, str):
        raise ValueError(f"JWK has no {name}")
    return int.from_bytes(decode_base64url(value))
