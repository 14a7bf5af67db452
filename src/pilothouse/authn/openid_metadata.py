"""The documents by which others verify service account tokens: issuer discovery and the key set."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import orjson

from pilothouse.authn.jose import VerificationKey, as_jwk

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEY_SET_PATH = "/openid/v1/jwks"
KEY_SET_MEDIA_TYPE = "application/jwk-set+json"
MAX_AGE = 3600


def check_issuer(issuer: str) -> None:
    """Raise ``ValueError`` if the issuer cannot have a discovery document; the endpoints are then left out."""
    if not issuer:
        raise ValueError("empty issuer URL")
    parts = urlsplit(issuer)
    if parts.scheme != "https":
        raise ValueError(f"issuer URL must use https scheme, got: {issuer}")
    if parts.query:
        raise ValueError(f"issuer URL may not include a query, got: {issuer}")
    if parts.fragment:
        raise ValueError(f"issuer URL may not include a fragment, got: {issuer}")


def build_configuration(issuer: str, jwks_uri: str, external_address: str, keys: Sequence[VerificationKey]) -> bytes:
    """The discovery document. Without a URI of its own the key set is at the server's external address."""
    check_issuer(issuer)
    if jwks_uri and urlsplit(jwks_uri).scheme != "https":
        raise ValueError(f"jwksURI requires https scheme, parsed as: {jwks_uri}")
    if not jwks_uri and not external_address:
        raise ValueError("either the JWKS URI or the default external address, or both, must be set")
    return orjson.dumps(
        {
            "issuer": issuer,
            "jwks_uri": jwks_uri or f"https://{external_address}{KEY_SET_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({as_jwk(key)["alg"] for key in keys}),
        }
    )


def build_key_set(keys: Sequence[VerificationKey]) -> bytes:
    """The key set."""
    if not keys:
        raise ValueError("no keys provided for validating keyset")
    return orjson.dumps({"keys": [as_jwk(key) for key in keys]})
