"""Tokens of service accounts: whose they are, whether they still hold, and what they say about the bearer.

Two kinds share the keys. Tokens of the TokenRequest API name an issuer of this server, expire, have audiences and may
be bound to a pod, secret or node: they die with it. Legacy tokens live in secrets, never expire, and hold as long as
the secret still contains them. Each verifier has no opinion about the other's issuer.
"""

from __future__ import annotations

import base64
import datetime
import hmac
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials
from pilothouse.authn.jose import InvalidToken, SignedToken, VerificationKey, claims_of, parse_token, verify
from pilothouse.authn.metrics import TokenMetrics
from pilothouse.machinery import user as names
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.user import User, service_account_groups, service_account_name, split_service_account
from pilothouse.machinery.weights import weight_of_values
from pilothouse.machinery.workers import weighed

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
INVALID_SINCE_LABEL: Final = "kubernetes.io/legacy-token-invalid-since"
LAST_USED_LABEL: Final = "kubernetes.io/legacy-token-last-used"
# Clocks of servers may differ by this much, in seconds.
LEEWAY: Final = 60
_INVALIDATED: Final = "service account token has been invalidated"
_AUTO_GENERATED: Final = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated "
    "secret-based tokens."
)


class ObjectGetter(Protocol):
    """Reads the objects that tokens refer to."""

    async def get(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The object, None if there is none."""
        ...


class Findings:
    """What a validation found out besides the user: warnings for the client and annotations for audit."""

    __slots__ = ("annotations", "warnings")

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.annotations: list[tuple[str, str]] = []


class Verifier(ABC):
    """Authenticates tokens of some issuers, signed by one of the keys; subclasses know the private claims."""

    def __init__(
        self,
        issuers: Sequence[str],
        keys: Callable[[], Sequence[VerificationKey]],
        api_audiences: Sequence[str],
        clock: Callable[[], float] = time.time,
        metrics: TokenMetrics | None = None,
        find_key: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``find_key`` may bring a key to light that a token names and ``keys`` does not have."""
        self._issuers = frozenset(issuers)
        self._find_key = find_key
        self._metrics = metrics or TokenMetrics()
        self._keys = keys
        self._api_audiences = tuple(api_audiences)
        self._clock = clock

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """The service account; None if the token is not of these issuers."""
        signed = parse_token(token)
        if signed is None:
            return None
        claims = claims_of(signed)
        if claims is None or not isinstance(claims.get("iss"), str) or claims["iss"] not in self._issuers:
            return None
        await self._check_signature(signed)
        findings = Findings()
        held = _audiences(claims)
        if not held:
            findings.annotations.append(("authentication.k8s.io/legacy-token", _text(claims, "sub")))
            self._metrics.legacy.value += 1
            held = self._api_audiences
        wanted = audiences or self._api_audiences
        common = await weighed(weight_of_values(len(held) + len(wanted)), self._common, held, wanted)
        user = await self._validate(token, claims, findings)
        return Authenticated(user, common, tuple(findings.warnings), tuple(findings.annotations))

    async def _check_signature(self, signed: SignedToken) -> None:
        wanted = signed.header.get("kid")
        keys = [key for key in self._keys() if not wanted or key.id == wanted]
        if not keys and self._find_key is not None:
            await self._find_key()
            keys = [key for key in self._keys() if not wanted or key.id == wanted]
        if not keys:
            raise InvalidCredentials("invalid signature, no keys found")
        errs: list[str] = []
        for key in keys:
            try:
                return verify(signed, key.key)
            except InvalidToken as error:
                errs.append(str(error))
        raise InvalidCredentials(*errs)

    def _common(self, held: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The audiences that are wanted and held. A token, and who has it reviewed, may name hundreds of thousands."""
        known = frozenset(held)
        common = tuple(audience for audience in wanted if audience in known)
        if not common and self._api_audiences:
            raise InvalidCredentials(
                f"token audiences {_quoted(held)} is invalid for the target audiences {_quoted(wanted)}"
            )
        return common

    @abstractmethod
    async def _validate(self, token: str, claims: Mapping[str, Any], findings: Findings) -> User:
        """The user behind verified claims; raises InvalidCredentials if they do not hold any more."""


class BoundTokens(Verifier):
    """Tokens of the TokenRequest API."""

    def __init__(
        self,
        issuers: Sequence[str],
        keys: Callable[[], Sequence[VerificationKey]],
        api_audiences: Sequence[str],
        objects: ObjectGetter,
        clock: Callable[[], float] = time.time,
        metrics: TokenMetrics | None = None,
        find_key: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(issuers, keys, api_audiences, clock, metrics, find_key)
        self._objects = objects

    async def _validate(self, token: str, claims: Mapping[str, Any], findings: Findings) -> User:
        now = self._clock()
        _check_times(claims, now)
        private = _mapping(claims, "kubernetes.io")
        namespace = _text(private, "namespace")
        account = _mapping(private, "serviceaccount")
        await self._check_account(namespace, account, now)
        extra = await self._bound_extra(namespace, private, now)
        warn_after = private.get("warnafter")
        if not isinstance(warn_after, int | float) or not warn_after:
            pass
        elif now <= warn_after:
            self._metrics.valid.value += 1
        else:
            self._metrics.stale.value += 1
            late = int(now) - int(warn_after)
            text = f"subject: {_text(claims, 'sub')}, seconds after warning threshold: {late}"
            findings.annotations.append(("authentication.k8s.io/stale-token", text))
        if _text(claims, "jti"):
            extra[names.CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        name = _text(account, "name")
        return User(
            service_account_name(namespace, name), _text(account, "uid"), service_account_groups(namespace), extra
        )

    async def _check_account(self, namespace: str, reference: Mapping[str, Any], now: float) -> None:
        name, uid = _text(reference, "name"), _text(reference, "uid")
        account = await self._objects.get("serviceaccounts", namespace, name)
        if account is None:
            raise InvalidCredentials(f"serviceaccounts {quote(name)} not found")
        actual = _text(_mapping(account, "metadata"), "uid")
        if actual != uid:
            raise InvalidCredentials(f"service account UID ({actual}) does not match claim ({uid})")
        if _deleted_before(account, now - LEEWAY):
            raise InvalidCredentials(f"service account {namespace}/{name} has been deleted")

    async def _bound_extra(self, namespace: str, private: Mapping[str, Any], now: float) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        secret, pod, node = (_mapping(private, kind) for kind in ("secret", "pod", "node"))
        if secret:
            await self._check_bound("secrets", namespace, secret, "secret", now)
        if pod:
            await self._check_bound("pods", namespace, pod, "pod", now)
            if _text(pod, "name") and _text(pod, "uid"):
                extra[names.POD_NAME], extra[names.POD_UID] = (_text(pod, "name"),), (_text(pod, "uid"),)
        elif node:
            await self._check_bound("nodes", "", node, "node", now)
        if node and _text(node, "name"):
            extra[names.NODE_NAME] = (_text(node, "name"),)
            if _text(node, "uid"):
                extra[names.NODE_UID] = (_text(node, "uid"),)
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
            if private.get(kind):
                gate = "APIServerWebhookAuthenticationToken"
                raise InvalidCredentials(f"feature gate {quote(gate)} is disabled, but token is webhook bound")
        return extra

    async def _check_bound(
        self, resource: str, namespace: str, reference: Mapping[str, Any], word: str, now: float
    ) -> None:
        found = await self._objects.get(resource, namespace, _text(reference, "name"))
        if found is None:
            raise InvalidCredentials(_INVALIDATED)
        actual, claimed = _text(_mapping(found, "metadata"), "uid"), _text(reference, "uid")
        if actual != claimed:
            raise InvalidCredentials(
                f"{word} UID ({actual}) does not match service account {word} ref claim ({claimed})"
            )
        if _deleted_before(found, now - LEEWAY):
            raise InvalidCredentials(_INVALIDATED)


class LegacyTokens(Verifier):
    """Tokens kept in secrets. ``note_use`` is told of every secret in use, to label it with the day."""

    def __init__(
        self,
        keys: Callable[[], Sequence[VerificationKey]],
        api_audiences: Sequence[str],
        objects: ObjectGetter | None,
        note_use: Callable[[Mapping[str, Any]], object] = lambda secret: None,
        clock: Callable[[], float] = time.time,
        metrics: TokenMetrics | None = None,
        find_key: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__((LEGACY_ISSUER,), keys, api_audiences, clock, metrics, find_key)
        self._objects = objects
        self._note_use = note_use

    async def _validate(self, token: str, claims: Mapping[str, Any], findings: Findings) -> User:
        prefix = "kubernetes.io/serviceaccount/"
        namespace = _text(claims, prefix + "namespace")
        secret = _text(claims, prefix + "secret.name")
        name = _text(claims, prefix + "service-account.name")
        uid = _text(claims, prefix + "service-account.uid")
        required = (
            ("sub", _text(claims, "sub")),
            ("namespace", namespace),
            ("secretName", secret),
            ("serviceAccountName", name),
            ("serviceAccountUID", uid),
        )
        for claim, value in required:
            if not value:
                raise InvalidCredentials(f"{claim} claim is missing")
        if split_service_account(_text(claims, "sub")) != (namespace, name):
            raise InvalidCredentials("sub claim is invalid")
        if self._objects is not None:
            await self._look_up(token, namespace, secret, name, uid, findings)
        return User(service_account_name(namespace, name), uid, service_account_groups(namespace))

    async def _look_up(
        self, token: str, namespace: str, secret_name: str, name: str, uid: str, findings: Findings
    ) -> None:
        assert self._objects is not None
        secret = await self._objects.get("secrets", namespace, secret_name)
        if secret is None or _mapping(secret, "metadata").get("deletionTimestamp"):
            raise InvalidCredentials("Token has been invalidated")
        if not _holds(secret, token):
            raise InvalidCredentials("Token does not match server's copy")
        account = await self._objects.get("serviceaccounts", namespace, name)
        if account is None:
            raise InvalidCredentials(f"serviceaccounts {quote(name)} not found")
        metadata = _mapping(account, "metadata")
        if metadata.get("deletionTimestamp"):
            raise InvalidCredentials(f"ServiceAccount {namespace}/{name} has been deleted")
        if _text(metadata, "uid") != uid:
            raise InvalidCredentials(f"ServiceAccount UID ({_text(metadata, 'uid')}) does not match claim ({uid})")
        self._note_use(secret)
        if (_mapping(secret, "metadata").get("labels") or {}).get(INVALID_SINCE_LABEL):
            self._metrics.invalidated.value += 1
            raise InvalidCredentials(
                f"the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked "
                "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
                f"'{INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token",
                annotations=(("authentication.k8s.io/legacy-token-invalidated", f"{secret_name}/{namespace}"),),
            )
        if any(reference.get("name") == secret_name for reference in account.get("secrets") or ()):
            self._metrics.generated.value += 1
            findings.warnings.append(_AUTO_GENERATED)
            findings.annotations.append(("authentication.k8s.io/legacy-token-autogenerated-secret", secret_name))
        else:
            self._metrics.manual.value += 1
            findings.annotations.append(("authentication.k8s.io/legacy-token-manual-secret", secret_name))


def last_used_label(secret: Mapping[str, Any], now: float) -> str:
    """The day to label a used secret with; empty if the label is already right (or ahead by a time zone)."""
    today = datetime.datetime.fromtimestamp(now, datetime.UTC)
    tomorrow = today + datetime.timedelta(days=1)
    known = (_mapping(secret, "metadata").get("labels") or {}).get(LAST_USED_LABEL)
    if known in (today.strftime("%Y-%m-%d"), tomorrow.strftime("%Y-%m-%d")):
        return ""
    return today.strftime("%Y-%m-%d")


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    expiry, begin, issued = (claims.get(name) for name in ("exp", "nbf", "iat"))
    if any(isinstance(when, bool) or not isinstance(when, int | float | None) for when in (expiry, begin, issued)):
        raise InvalidCredentials(
            "service account token claims could not be validated due to unexpected validation error"
        )
    if begin is not None and now + LEEWAY < begin:
        raise InvalidCredentials("service account token is not valid yet")
    if expiry is not None and now - LEEWAY > expiry:
        raise InvalidCredentials("service account token has expired")
    if issued is not None and now + LEEWAY < issued:
        raise InvalidCredentials("service account token is issued in the future")


def _deleted_before(obj: Mapping[str, Any], moment: float) -> bool:
    when = _mapping(obj, "metadata").get("deletionTimestamp")
    if not when:
        return False
    return datetime.datetime.fromisoformat(when).timestamp() < moment


def _holds(secret: Mapping[str, Any], token: str) -> bool:
    try:
        kept = base64.b64decode((secret.get("data") or {}).get("token", ""))
    except ValueError:
        return False
    return hmac.compare_digest(kept, token.encode())


def _audiences(claims: Mapping[str, Any]) -> tuple[str, ...]:
    value = claims.get("aud")
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _mapping(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _text(parent: Mapping[str, Any], key: str) -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(quote(value) for value in values) + "]"
