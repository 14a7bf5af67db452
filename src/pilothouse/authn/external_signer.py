"""Service account tokens signed elsewhere: ``--service-account-signing-endpoint``.

A service on a Unix socket holds the private keys. It signs what it is given and tells which public keys count; those
are asked for at the start, again when the service says so, and whenever a token names an unknown key. While the
service is away, the keys known so far go on counting and no token can be issued.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from pilothouse.authn.jose import VerificationKey, decode_base64url, encode_base64url, load_pkix_key
from pilothouse.authn.metrics import SignerMetrics
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.protobuf import plain_messages as messages
from pilothouse.machinery.single_flight import SingleFlight
from pilothouse.net.unary_calls import CallFailed

logger = logging.getLogger(__name__)
SERVICE: Final = "v1.ExternalJWTSigner"
ALGORITHMS: Final = ("RS256", "ES256", "ES384", "ES512")
_KEY_SECONDS: Final = 60.0
_METADATA_SECONDS: Final = 10.0
_SIGN_SECONDS: Final = 60.0
_RETRY_SECONDS: Final = 10.0
_MAX_ID: Final = 1024
_HEADER_FIELDS: Final = frozenset({"alg", "kid", "typ"})


class SigningFailed(Exception):
    """The service does not sign, or says what cannot be used."""


class Calls(Protocol):
    """How the service is reached."""

    async def call(self, method: str, body: bytes, seconds: float, *, wait_for_ready: bool = False) -> bytes:
        """The answer to a message. Raises CallFailed."""
        ...


class ExternalSigner:
    """The service, and the keys it has told."""

    def __init__(
        self,
        calls: Calls,
        metrics: SignerMetrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls, self._metrics, self._clock = calls, metrics or SignerMetrics(), clock
        self._keys: list[VerificationKey] = []
        self._hidden: frozenset[str] = frozenset()
        self._refresh_at = 0.0
        self._refreshing: SingleFlight[str, None] = SingleFlight("keys of the external signer")

    def known_keys(self) -> Sequence[VerificationKey]:
        """The keys that tokens are verified with."""
        return self._keys

    def shown_keys(self) -> Sequence[VerificationKey]:
        """Those of them that others are told of."""
        return [key for key in self._keys if key.id not in self._hidden]

    @property
    def max_age(self) -> int:
        """For how many seconds others may keep the keys."""
        return max(0, int(self._refresh_at - self._clock()))

    async def refresh(self) -> None:
        """Ask for the keys; many who ask at once share one answer. Raises SigningFailed."""
        await self._refreshing.get("keys", self._fetch)

    async def find_key(self) -> None:
        """A token names an unknown key: ask, and let it stay unknown when there is no answer."""
        try:
            await self.refresh()
        except SigningFailed as failure:
            logger.error("the keys of the external signer cannot be fetched: %s", failure)

    async def keep_fresh(self) -> None:
        """Ask again and again, as often as the service wants."""
        while True:
            await asyncio.sleep(max(0.0, self._refresh_at - self._clock()))
            try:
                await self.refresh()
            except SigningFailed as failure:
                logger.error("the keys of the external signer are kept as they were: %s", failure)
                await asyncio.sleep(_RETRY_SECONDS)

    async def longest_seconds(self) -> int:
        """How long the service lets tokens live. Raises SigningFailed."""
        answer = await self._ask("Metadata", b"", _METADATA_SECONDS)
        return _signed(messages.number_of(answer, 1))

    async def sign_claims(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims. Raises SigningFailed."""
        payload = encode_base64url(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))
        code = "unknown-non-grpc"
        try:
            answer = await self._ask("Sign", messages.encode({1: payload}), _SIGN_SECONDS, "while signing jwt: ")
            header, signature = messages.text_of(answer, 1), messages.text_of(answer, 2)
            try:
                await self._check_header(header)
            except ValueError as error:
                raise SigningFailed(f"while validating header: {error}") from None
            if not signature:
                raise SigningFailed("empty signature returned")
            code = "OK"
        except SigningFailed as failure:
            code = getattr(failure.__cause__, "code", "") or code
            raise
        finally:
            self._metrics.signed(code)
        return f"{header}.{payload}.{signature}"

    async def _check_header(self, text: str) -> None:
        try:
            header = orjson.loads(decode_base64url(text))
        except ValueError as error:
            raise ValueError(f"while unwrapping header: {error}") from None
        if not isinstance(header, dict) or not set(header) <= _HEADER_FIELDS:
            unknown = sorted(set(header) - _HEADER_FIELDS) if isinstance(header, dict) else ["header"]
            raise ValueError(f"while parsing header JSON: json: unknown field {quote(unknown[0])}")
        identity, algorithm = str(header.get("kid") or ""), str(header.get("alg") or "")
        if header.get("typ") != "JWT":
            raise ValueError("bad type")
        if not identity:
            raise ValueError("key id missing")
        if len(identity.encode()) > _MAX_ID:
            raise ValueError("key id longer than 1 kb")
        if algorithm not in ALGORITHMS:
            raise ValueError(f"bad signing algorithm {quote(algorithm)}")
        if all(key.id != identity for key in self._keys):
            await self.find_key()
        if identity in self._hidden:
            raise ValueError(f"key used for signing JWT (kid: {identity}) is excluded from OIDC discovery docs")

    async def _fetch(self) -> None:
        prefix = "while fetching token verification keys: "
        code = "unknown-non-grpc"
        try:
            answer = await self._ask(
                "FetchKeys", b"", _KEY_SECONDS, f"{prefix}while getting externally supported jwt signing keys: "
            )
            try:
                self._take(answer)
            except ValueError as error:
                raise SigningFailed(f"{prefix}{error}") from None
            code = "OK"
        except SigningFailed as failure:
            code = getattr(failure.__cause__, "code", "") or code
            raise
        finally:
            self._metrics.fetched(code)

    def _take(self, answer: Mapping[int, list[bytes | int]]) -> None:
        hint = _signed(messages.number_of(answer, 3))
        if hint <= 0:
            raise ValueError(f"found invalid refresh hint ({hint}s)")
        entries = [messages.decode(entry) for entry in answer.get(1, ()) if isinstance(entry, bytes)]
        if not entries:
            raise ValueError("found no keys")
        if 2 not in answer:
            raise ValueError("invalid data timestamp: proto: invalid nil Timestamp")
        stamp = messages.decode(messages.data_of(answer, 2))
        keys = [_read_key(entry) for entry in entries]
        self._hidden = frozenset(messages.text_of(entry, 1) for entry in entries if messages.number_of(entry, 3))
        self._keys = keys
        self._refresh_at = self._clock() + hint
        self._metrics.dated(messages.number_of(stamp, 1) + messages.number_of(stamp, 2) / 1e9)

    async def _ask(self, method: str, body: bytes, seconds: float, prefix: str = "") -> dict[int, list[bytes | int]]:
        started, code = time.perf_counter(), "OK"
        try:
            return messages.decode(await self._calls.call(method, body, seconds, wait_for_ready=True))
        except CallFailed as failure:
            code = failure.code or "unknown-non-grpc"
            raise SigningFailed(f"{prefix}{failure}") from failure
        except messages.MalformedMessage as error:
            raise SigningFailed(f"{prefix}{error}") from None
        finally:
            self._metrics.called(f"/{SERVICE}/{method}", code, time.perf_counter() - started)


def _read_key(entry: Mapping[int, list[bytes | int]]) -> VerificationKey:
    identity, data = messages.text_of(entry, 1), messages.data_of(entry, 2)
    if not identity or len(identity.encode()) > _MAX_ID:
        raise ValueError(f"found invalid public key id {quote(identity)}")
    if not data:
        raise ValueError("found empty public key")
    try:
        return VerificationKey(identity, load_pkix_key(data))
    except ValueError as error:
        raise ValueError(f"while parsing external public keys: {error}") from None


def _signed(number: int) -> int:
    """A number of 64 bits as Go reads it."""
    return number - (1 << 64) if number >= 1 << 63 else number
