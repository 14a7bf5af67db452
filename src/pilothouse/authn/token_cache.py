"""Remembers what tokens proved, so that a signature is verified once in ten seconds and not once a request.

Keys are keyed digests of the token and the audiences: tokens themselves are not kept. Concurrent requests with the
same unknown token share one lookup, which runs on even if the client that began it leaves. The number of entries is
bounded, and so is what is in them; ``forget_all`` makes every later request prove itself again, for instance when a
bound object is deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable

from pilothouse.authn.authenticator import Authenticated, InvalidCredentials, TokenAuthenticator
from pilothouse.authn.metrics import TokenCacheMetrics
from pilothouse.machinery.single_flight import SingleFlight
from pilothouse.machinery.user import User
from pilothouse.machinery.weights import weight_of_values
from pilothouse.machinery.workers import LONG, aside

MAX_ENTRIES = 32 * 1024
MAX_BYTES = 64 * 1024 * 1024
"""Of groups and the like: somebody else says how many a user has."""
LOOKUP_TIMEOUT = 30.0


class _Record:
    __slots__ = ("error", "found", "size", "until")

    def __init__(self, found: Authenticated | None, error: InvalidCredentials | None, until: float) -> None:
        self.found = found
        self.error = error
        self.until = until
        self.size = _size(found.user) if found is not None else sum(map(len, error.messages)) if error else 0


def _size(user: User) -> int:
    """About how many bytes are kept for a user."""
    return sum(map(len, user.groups)) + sum(len(value) for values in user.extra.values() for value in values)


class TokenCache:
    """Wraps a token authenticator. A time to live of 0 means that such answers are not kept."""

    def __init__(
        self,
        inner: TokenAuthenticator,
        success_ttl: float = 10.0,
        failure_ttl: float = 0.0,
        *,
        cache_errors: bool = True,
        clock: Callable[[], float] = time.monotonic,
        max_entries: int = MAX_ENTRIES,
        metrics: TokenCacheMetrics | None = None,
    ) -> None:
        self._inner = inner
        self._success_ttl = success_ttl
        self._failure_ttl = failure_ttl
        self._cache_errors = cache_errors
        self._clock = clock
        self._max_entries = max_entries
        self.metrics = metrics or TokenCacheMetrics()
        self._secret = os.urandom(32)
        self._records: dict[bytes, _Record] = {}
        self._size = 0
        """Bytes of what is in the records."""
        self._lookups: SingleFlight[tuple[int, bytes], _Record] = SingleFlight("token lookup")
        """By epoch, too: what was asked before everything was forgotten is not for those who ask after."""
        self.epoch = 0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """As the inner authenticator."""
        return (await self.lookup(token, audiences))[0]

    async def lookup(self, token: str, audiences: tuple[str, ...]) -> tuple[Authenticated | None, float]:
        """The identity and the monotonic time until which it may be reused."""
        weight = len(token) + weight_of_values(len(audiences))
        key = self._key(token, audiences) if weight < LONG else await aside(self._key, token, audiences, weight=weight)
        record = self._records.get(key)
        if record is None or record.until <= self._clock():
            record = await self._miss(key, token, audiences)
        else:
            self.metrics.hit()
        if record.error is not None:
            raise InvalidCredentials(*record.error.messages, annotations=record.error.annotations)
        return record.found, record.until

    def forget_all(self) -> None:
        """Drop every remembered answer, here and on connections that remember by themselves."""
        self._records.clear()
        self._size = 0
        self.epoch += 1

    async def _miss(self, key: bytes, token: str, audiences: tuple[str, ...]) -> _Record:
        started = self._clock()
        self.metrics.blocked.value += 1
        try:
            return await self._look_up(key, token, audiences)
        finally:
            self.metrics.blocked.value -= 1
            self.metrics.missed(self._clock() - started)

    async def _look_up(self, key: bytes, token: str, audiences: tuple[str, ...]) -> _Record:
        epoch = self.epoch
        return await self._lookups.get((epoch, key), lambda: self._fetch(key, token, audiences, epoch))

    async def _fetch(self, key: bytes, token: str, audiences: tuple[str, ...], epoch: int) -> _Record:
        found: Authenticated | None = None
        error: InvalidCredentials | None = None
        self.metrics.in_flight.value += 1
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                found = await self._inner.authenticate_token(token, audiences)
        except InvalidCredentials as refusal:
            error = refusal
        except TimeoutError:
            error = InvalidCredentials("context deadline exceeded")
        finally:
            self.metrics.in_flight.value -= 1
        self.metrics.fetched(ok=error is None)
        ttl = self._success_ttl if found is not None else self._failure_ttl
        if error is not None and not self._cache_errors:
            ttl = 0.0
        record = _Record(found, error, self._clock() + ttl if ttl > 0 else 0.0)
        if ttl > 0 and epoch == self.epoch:
            self._keep(key, record)
        return record

    def _keep(self, key: bytes, record: _Record) -> None:
        records = self._records
        self._drop(key)
        if len(records) >= self._max_entries or self._size + record.size > MAX_BYTES:
            now = self._clock()
            for stale in [k for k, r in records.items() if r.until <= now]:
                self._drop(stale)
            while records and (len(records) >= self._max_entries or self._size + record.size > MAX_BYTES):
                self._drop(next(iter(records)))
        records[key] = record
        self._size += record.size

    def _drop(self, key: bytes) -> None:
        record = self._records.pop(key, None)
        if record is not None:
            self._size -= record.size

    def _key(self, token: str, audiences: tuple[str, ...]) -> bytes:
        # Lengths go first, so that no two different inputs are the same text.
        text = token.encode("utf-8", "surrogatepass")
        head = f"{len(text)}:" + "".join(f"{len(audience)}:{audience}" for audience in audiences)
        return hashlib.blake2b(head.encode() + b"\0" + text, key=self._secret, digest_size=32).digest()
