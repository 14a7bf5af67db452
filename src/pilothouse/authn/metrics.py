"""What is counted about authentication: attempts, the cache of tokens, service account tokens, issuers, reloads."""

from __future__ import annotations

import time
from typing import Final

from pilothouse.machinery.metrics import (
    Counter,
    Gauge,
    Histogram,
    Instrument,
    Refreshed,
    Value,
    counted_durations,
    doubling_buckets,
)
from pilothouse.machinery.reload_metrics import ReloadMetrics, hashed

ATTEMPT_BUCKETS: Final = doubling_buckets(0.001, 15)
_EXPIRATIONS: Final = (
    0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000,
)  # fmt: skip
_TOKEN_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SHOWN_NAMES: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
_KEPT_NAMES: Final = 4096
_LONGEST_NAME: Final = 1024


class AuthenticationMetrics:
    """The instruments of one server."""

    def __init__(self, server: str = "") -> None:
        self._users = Counter("authenticated_user_requests", "[ALPHA] Authenticated requests by user.", ("username",))
        seconds = self._seconds = Histogram(
            "authentication_duration_seconds", "[ALPHA] Seconds to authenticate.", ("result",), ATTEMPT_BUCKETS
        )
        self.results = {result: seconds.labelled(result) for result in ("success", "failure", "error")}
        """To be told how long an attempt took: ``failure`` where nothing was offered, ``error`` where it was wrong."""
        self._attempts = counted_durations(
            "authentication_attempts", "[ALPHA] Attempts to authenticate.", ("result",), seconds
        )
        self._expirations = Histogram(
            "apiserver_client_certificate_expiration_seconds",
            "[ALPHA] Seconds until the certificates of clients expire, once a connection.",
            (),
            _EXPIRATIONS,
        )
        self.observe_expiration = self._expirations.labelled().observe
        self._by_name: dict[str, Value] = {}
        self.cache = TokenCacheMetrics()
        self.tokens = TokenMetrics()
        self.reloads = ReloadMetrics("authentication", "authentication configuration", server)
        self._server = hashed(server)
        self._fetches = Gauge(
            "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
            "[ALPHA] When the keys of an issuer were last fetched.",
            ("result", "jwt_issuer_hash", "apiserver_id_hash"),
        )
        self._key_sets = Gauge(
            "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
            "[ALPHA] The keys of an issuer that were fetched last.",
            ("jwt_issuer_hash", "apiserver_id_hash", "hash"),
        )
        self._key_set_of: dict[str, str] = {}
        self._issuers = Histogram(
            "apiserver_authentication_jwt_authenticator_latency_seconds",
            "[ALPHA] Seconds to authenticate a token that was not remembered.",
            ("result", "jwt_issuer_hash"),
            _TOKEN_BUCKETS,
        )

    def note_user(self, name: str) -> None:
        """A request of this user; few are told apart by name."""
        counted = self._by_name.get(name)
        if counted is None:
            if len(self._by_name) >= _KEPT_NAMES:
                self._by_name.clear()
            shown = name if name in _SHOWN_NAMES else "email_id" if "@" in name else "other"
            counted = self._users.labelled(shown)
            if len(name) <= _LONGEST_NAME:
                self._by_name[name] = counted
        counted.value += 1

    def note_issuer(self, issuer_hash: str, result: str, seconds: float) -> None:
        """A token of an issuer was looked at: ``success`` or ``failure``."""
        self._issuers.labelled(result, issuer_hash).observe(seconds)

    def note_keys(self, issuer_hash: str, keys: bytes | None) -> None:
        """The keys of an issuer were fetched, or could not be."""
        result = "failure" if keys is None else "success"
        self._fetches.labelled(result, issuer_hash, self._server).value = time.time()
        if keys is not None:
            self._key_set_of[issuer_hash] = hashed(keys.decode("utf-8", "replace"))
            self._key_sets.forget()
            for issuer, digest in self._key_set_of.items():
                self._key_sets.labelled(issuer, self._server, digest).value = 1

    def instruments(self) -> list[Instrument]:
        """All of them."""
        own = (
            self._users,
            self._attempts,
            self._seconds,
            self._expirations,
            self._issuers,
            self._fetches,
            self._key_sets,
        )
        parts = (self.cache, self.tokens, self.reloads)
        return [*own, *(each for part in parts for each in part.instruments())]


class SignerMetrics:
    """Calls of the external signer of service account tokens."""

    def __init__(self) -> None:
        prefix = "apiserver_externaljwt"
        self._fetched_at = Gauge(f"{prefix}_fetch_keys_success_timestamp", "[ALPHA] When keys were last fetched.")
        self._dated = Gauge(f"{prefix}_fetch_keys_data_timestamp", "[ALPHA] How old the fetched keys are.")
        self._fetches = Counter(f"{prefix}_fetch_keys_request_total", "[ALPHA] Attempts to fetch keys.", ("code",))
        self._signings = Counter(f"{prefix}_sign_request_total", "[ALPHA] Attempts to sign.", ("code",))
        self._seconds = Histogram(
            f"{prefix}_request_duration_seconds",
            "[ALPHA] Seconds of calls to the external signer.",
            ("method", "code"),
            (*_TOKEN_BUCKETS, 30.0, 60.0),
        )

    def fetched(self, code: str) -> None:
        """Keys were asked for."""
        self._fetches.labelled(code).value += 1
        if code == "OK":
            self._fetched_at.labelled().value = time.time()

    def dated(self, moment: float) -> None:
        """The keys are as of this time."""
        self._dated.labelled().value = moment

    def signed(self, code: str) -> None:
        """A token was to be signed."""
        self._signings.labelled(code).value += 1

    def called(self, method: str, code: str, seconds: float) -> None:
        """A call is over."""
        self._seconds.labelled(method, code).observe(seconds)

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._fetched_at, self._dated, self._fetches, self._signings, self._seconds


class TokenCacheMetrics:
    """How often a token was known already."""

    def __init__(self) -> None:
        prefix = "authentication_token_cache"
        requests = self._requests = Counter(f"{prefix}_request_total", "[ALPHA] Questions about tokens.", ("status",))
        seconds = self._seconds = Histogram(
            f"{prefix}_request_duration_seconds", "[ALPHA] Seconds to know a token.", ("status",)
        )
        self._fetches = Counter(f"{prefix}_fetch_total", "[ALPHA] Tokens that were looked at.", ("status",))
        self._active = Gauge(f"{prefix}_active_fetch_count", "[ALPHA] Tokens being looked at.", ("status",))
        self._hits, self._hit_seconds = requests.labelled("hit"), seconds.labelled("hit")
        self._misses, self._miss_seconds = requests.labelled("miss"), seconds.labelled("miss")
        self._ended = {True: self._fetches.labelled("ok"), False: self._fetches.labelled("error")}
        self.in_flight, self.blocked = self._active.labelled("in_flight"), self._active.labelled("blocked")

    def hit(self) -> None:
        """A token was known."""
        self._hits.value += 1

    def _fold(self) -> None:
        """Hits take no time: their durations are made of their number."""
        known = self._hit_seconds
        known.observe_many(0.0, int(self._hits.value) - known.count)

    def missed(self, seconds: float) -> None:
        """A token was not known, and it took this long to learn about it."""
        self._misses.value += 1
        # kube-apiserver counts whole milliseconds.
        self._miss_seconds.observe(int(seconds * 1000) / 1000)

    def fetched(self, *, ok: bool) -> None:
        """A lookup is over."""
        self._ended[ok].value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._requests, Refreshed(self._seconds, self._fold), self._fetches, self._active


class TokenMetrics:
    """Uses of service account tokens."""

    def __init__(self) -> None:
        self._all: list[Instrument] = []
        self.legacy = self._counter("legacy_tokens_total", "[BETA] Legacy tokens used.")
        self.stale = self._counter("stale_tokens_total", "[BETA] Extended tokens used too late.")
        self.valid = self._counter("valid_tokens_total", "[BETA] Extended tokens used in time.")
        self.manual = self._counter("legacy_manual_token_uses_total", "[ALPHA] Tokens of secrets made by hand used.")
        self.generated = self._counter("legacy_auto_token_uses_total", "[ALPHA] Tokens of generated secrets used.")
        self.invalidated = self._counter(
            "invalid_legacy_auto_token_uses_total", "[ALPHA] Invalidated tokens of generated secrets used."
        )

    def _counter(self, name: str, words: str) -> Value:
        counter = Counter(f"serviceaccount_{name}", words)
        self._all.append(counter)
        return counter.labelled()

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return tuple(self._all)
