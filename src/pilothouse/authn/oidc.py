"""Tokens of OpenID Connect issuers.

The issuer's discovery document names its key set. Both are fetched when a token of the issuer first comes, so an
issuer that runs inside of the cluster need not be up at start. A token signed by an unknown key makes the key set be
fetched again, which is how keys rotate; not more than once a second, so that made-up tokens cannot flood the issuer.
Distributed claims are refused: they would let a token choose where the server connects to.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pilothouse.authn.authentication_configuration import TrustedIssuer
from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.claim_expressions import claims_value
from pilothouse.authn.issuer_documents import Fetch, FetchFailed
from pilothouse.authn.jose import (
    ALGORITHMS,
    InvalidToken,
    SignedToken,
    VerificationKey,
    claims_of,
    from_jwk,
    parse_token,
    verify,
)
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.machinery import large_json
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.reload_metrics import hashed
from pilothouse.machinery.user import CREDENTIAL_ID, User
from pilothouse.machinery.weights import weight_of_values
from pilothouse.machinery.workers import LONG, aside, weighed

_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_NOT_BEFORE_LEEWAY: Final = 300
_DISCOVERY_PAUSE: Final = 10.0
_REFETCH_PAUSE: Final = 1.0
_MAX_KEYS: Final = 256
_FEW_KEYS: Final = 16
"""So many can be tried in a millisecond or two."""


class KeySet:
    """The keys of an issuer, found by discovery and fetched again when an unknown key appears."""

    def __init__(
        self,
        issuer: TrustedIssuer,
        fetch: Fetch,
        clock: Callable[[], float] = time.monotonic,
        note_keys: Callable[[bytes | None], object] = lambda keys: None,
    ) -> None:
        self._issuer = issuer
        self._note_keys = note_keys
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._url = ""
        self._keys: list[VerificationKey] = []
        self._next_discovery = float("-inf")
        self._next_fetch = float("-inf")
        self._generation = 0
        self.error = f"oidc: authenticator for issuer {quote(issuer.url)} is not initialized"

    async def check(self, token: SignedToken) -> None:
        """Raise InvalidCredentials unless one of the keys signed the token."""
        generation = self._generation
        if await self._is_signed(token):
            return
        await self._refresh(generation)
        if not await self._is_signed(token):
            raise InvalidCredentials(
                "oidc: verify token: failed to verify signature: failed to verify id token signature"
            )

    async def _is_signed(self, token: SignedToken) -> bool:
        """Whether one of the keys signed it; aside if there are many to try."""
        return self._signed(token) if len(self._keys) <= _FEW_KEYS else await aside(self._signed, token, weight=LONG)

    def _signed(self, token: SignedToken) -> bool:
        wanted = token.header.get("kid")
        for key in self._keys:
            if not wanted or key.id == wanted:
                try:
                    verify(token, key.key)
                except InvalidToken:
                    continue
                return True
        return False

    async def _refresh(self, generation: int) -> None:
        async with self._lock:
            if generation != self._generation:
                return
            if not self._url:
                await self._discover()
            now = self._clock()
            if now < self._next_fetch:
                return
            self._next_fetch = now + _REFETCH_PAUSE
            try:
                data = await self._fetch(self._url)
                self._keys = await weighed(len(data), _read_keys, data)
                self._note_keys(data)
            except (FetchFailed, ValueError) as error:
                self._note_keys(None)
                raise InvalidCredentials(
                    f"oidc: verify token: failed to verify signature: fetching keys oidc: get keys failed {error}"
                ) from None
            self._generation += 1

    async def _discover(self) -> None:
        if self._clock() < self._next_discovery:
            raise InvalidCredentials("oidc: authenticator not initialized")
        self._next_discovery = self._clock() + _DISCOVERY_PAUSE
        issuer = self._issuer
        url = issuer.discovery_url or issuer.url.removesuffix("/") + _WELL_KNOWN
        try:
            data = await self._fetch(url)
            document = await weighed(len(data), large_json.loads, data)
            if not isinstance(document, dict) or document.get("issuer") != issuer.url:
                raise ValueError("issuer did not match the issuer returned by provider")
            self._url = str(document.get("jwks_uri") or "")
            if not self._url.startswith("https://"):
                self._url = ""
                raise ValueError("provider did not return JWKS URL")
        except (FetchFailed, ValueError) as error:
            self.error = f"oidc: authenticator for issuer {quote(issuer.url)} is not healthy: {error}"
            raise InvalidCredentials("oidc: authenticator not initialized") from None
        self.error = ""


def _read_keys(data: bytes) -> list[VerificationKey]:
    document = large_json.loads(data)
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ValueError("the key set is malformed")
    keys: list[VerificationKey] = []
    for jwk in document["keys"][:_MAX_KEYS]:
        if isinstance(jwk, dict) and jwk.get("use", "sig") == "sig":
            key = from_jwk(jwk)
            if key is not None:
                keys.append(key)
    return keys


class OIDCAuthenticator:
    """Authenticates tokens of one issuer."""

    def __init__(
        self,
        issuer: TrustedIssuer,
        fetch: Fetch,
        algorithms: Sequence[str] = ALGORITHMS,
        clock: Callable[[], float] = time.time,
        metrics: AuthenticationMetrics | None = None,
    ) -> None:
        for algorithm in algorithms:
            if algorithm not in ALGORITHMS:
                raise ValueError(f"oidc: unsupported signing alg: {quote(algorithm)}")
        self._issuer = issuer
        self._algorithms = tuple(algorithms) or ("RS256",)
        self._clock = clock
        self._metrics = counted = metrics or AuthenticationMetrics()
        self._issuer_hash = issuer_hash = hashed(issuer.url)
        self.keys = KeySet(issuer, fetch, note_keys=lambda keys: counted.note_keys(issuer_hash, keys))

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The user that the claims describe; None if another issuer made the token."""
        signed = parse_token(token)
        claims = None if signed is None else claims_of(signed)
        if signed is None or claims is None or claims.get("iss") != self._issuer.url:
            return None
        started = time.perf_counter()
        result = "failure"
        try:
            found = await self._verify(signed, claims)
            result = "success"
            return found
        finally:
            self._metrics.note_issuer(self._issuer_hash, result, time.perf_counter() - started)

    async def _verify(self, signed: SignedToken, claims: Mapping[str, Any]) -> Authenticated:
        audiences = claims.get("aud")
        weight = weight_of_values(len(audiences)) if isinstance(audiences, list) else 0
        await weighed(weight, self._check_claims, claims)
        if signed.header.get("alg") not in self._algorithms:
            expected = "[" + " ".join(quote(algorithm) for algorithm in self._algorithms) + "]"
            found = quote(str(signed.header.get("alg")))
            raise InvalidCredentials(
                f"oidc: verify token: oidc: id token signed with unsupported algorithm, expected {expected} got {found}"
            )
        await self.keys.check(signed)
        return Authenticated(self._user(claims))

    def _check_claims(self, claims: Mapping[str, Any]) -> None:
        held = claims.get("aud")
        held = [held] if isinstance(held, str) else held if isinstance(held, list) else []
        wanted = self._issuer.audiences
        if not any(audience in wanted for audience in held):
            shown = "[" + " ".join(quote(str(audience)) for audience in held) + "]"
            if len(wanted) == 1:
                raise InvalidCredentials(f"oidc: verify token: oidc: expected audience {quote(wanted[0])} got {shown}")
            listed = "[" + " ".join(quote(audience) for audience in sorted(wanted)) + "]"
            raise InvalidCredentials(f"oidc: verify token: oidc: expected audience in {listed} got {shown}")
        now = self._clock()
        expiry, begin = claims.get("exp", 0), claims.get("nbf")
        if isinstance(expiry, bool) or not isinstance(expiry, int | float) or expiry < now:
            raise InvalidCredentials(f"oidc: verify token: oidc: token is expired (Token Expiry: {_show_time(expiry)})")
        if isinstance(begin, int | float) and now + _NOT_BEFORE_LEEWAY < begin:
            raise InvalidCredentials(
                f"oidc: verify token: oidc: current time {_show_time(now)} before the nbf (not before) time: "
                f"{_show_time(begin)}"
            )

    def _user(self, claims: Mapping[str, Any]) -> User:
        issuer = self._issuer
        if issuer.groups_claim:
            _refuse_distributed(claims, issuer.groups_claim)
        expressions = issuer.expressions
        seen: Any = None if expressions is None else claims_value(claims)
        if expressions is not None and expressions.username is not None:
            name = expressions.read_username(seen)
        else:
            name = self._username(claims)
        groups = self._groups(claims)
        if expressions is not None and expressions.groups is not None:
            groups = expressions.read_groups(seen)
        uid = _string(claims, issuer.uid_claim, "oidc: parse uid claim {}: {}") if issuer.uid_claim else ""
        if expressions is not None and expressions.uid is not None:
            uid = expressions.read_uid(seen)
        identity = claims.get("jti")
        extra: dict[str, tuple[str, ...]] = {}
        if isinstance(identity, str) and identity:
            extra[CREDENTIAL_ID] = (f"JTI={identity}",)
        if expressions is not None:
            extra.update(expressions.read_extra(seen))
        for claim, wanted in issuer.required_claims.items():
            _require(claims, claim, wanted)
        user = User(name, uid, groups, extra)
        if expressions is not None:
            expressions.check_claims(seen)
            expressions.check_user(user)
        return user

    def _username(self, claims: Mapping[str, Any]) -> str:
        issuer = self._issuer
        username = _string(claims, issuer.username_claim, "oidc: parse username claims {}: {}")
        verified = claims.get("email_verified", True)
        if issuer.username_claim == "email" and verified is not True:
            if not isinstance(verified, bool | None):
                raise InvalidCredentials(
                    f"oidc: parse 'email_verified' claim: json: cannot unmarshal {json_type(verified)} into Go value "
                    "of type bool"
                )
            raise InvalidCredentials("oidc: email not verified")
        return issuer.username_prefix + username

    def _groups(self, claims: Mapping[str, Any]) -> tuple[str, ...]:
        claim = self._issuer.groups_claim
        if not claim:
            return ()
        value = claims.get(claim)
        if value is None:
            return ()
        groups = value if isinstance(value, list) else [value]
        if any(not isinstance(group, str) for group in groups):
            raise InvalidCredentials(
                f"oidc: parse groups claim {quote(claim)}: json: cannot unmarshal {json_type(value)} into Go value of "
                "type string"
            )
        return tuple(self._issuer.groups_prefix + group for group in groups)


def _refuse_distributed(claims: Mapping[str, Any], claim: str) -> None:
    """A claim that has to be fetched elsewhere is refused, and so is what says so but makes no sense."""
    if claim in claims or "_claim_names" not in claims:
        return
    failed = "oidc: could not expand distributed claims: "
    names, sources = claims["_claim_names"] or {}, claims.get("_claim_sources") or {}
    if not isinstance(names, dict) or not all(isinstance(source, str) for source in names.values()):
        raise InvalidCredentials(failed + "oidc: error parsing distributed claim names")
    if "_claim_sources" not in claims:
        raise InvalidCredentials(failed + "oidc: no claim sources")
    if not isinstance(sources, dict) or not all(isinstance(source, dict) for source in sources.values()):
        raise InvalidCredentials(failed + "oidc: could not parse claim sources")
    if claim not in names:
        return
    if names[claim] not in sources:
        missing = f"id token _claim_names contained a source {names[claim]} missing in _claims_sources"
        raise InvalidCredentials(failed + missing)
    if sources[names[claim]].get("endpoint"):
        raise InvalidCredentials(failed + "they are not supported")


def _string(claims: Mapping[str, Any], claim: str, message: str) -> str:
    if claim not in claims:
        raise InvalidCredentials(message.format(quote(claim), "claim not present"))
    value = claims[claim]
    if value is None:
        return ""
    if not isinstance(value, str):
        error = f"json: cannot unmarshal {json_type(value)} into Go value of type string"
        raise InvalidCredentials(message.format(quote(claim), error))
    return value


def _require(claims: Mapping[str, Any], claim: str, wanted: str) -> None:
    if claim not in claims:
        raise InvalidCredentials(f"oidc: required claim {claim} not present in ID token")
    value = claims[claim] or ""
    if not isinstance(value, str):
        raise InvalidCredentials(
            f"oidc: parse claim {claim}: json: cannot unmarshal {json_type(value)} into Go value of type string"
        )
    if value != wanted:
        raise InvalidCredentials(f"oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}")


def _show_time(moment: Any) -> str:
    try:
        shown = datetime.datetime.fromtimestamp(int(moment), datetime.UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return "0001-01-01 00:00:00 +0000 UTC"
    return shown.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
