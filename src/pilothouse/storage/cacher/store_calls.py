"""The calls that the cache of one resource makes to the store: timed by operation, and spans of whom they are made for.

Operations have the names of kube-apiserver's calls to etcd, whichever store it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from time import perf_counter
from typing import Any, Final, TypeVar

from pilothouse.machinery.observations import Observations
from pilothouse.machinery.spans import Fields, Span, current
from pilothouse.storage.backends.contract import Backend, Foreseen, KeyValue, Page

CALL_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
T = TypeVar("T")


class StoreCalls:
    """What a cache asks of its backend."""

    __slots__ = ("_backend", "_creating", "_deleting", "_updating", "durations", "failures")

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._creating, self._deleting = f"Create {backend.name}", f"Delete {backend.name}"
        self._updating = f"GuaranteedUpdate {backend.name}"
        self.durations: dict[str, Observations] = {}
        """By operation."""
        self.failures: dict[str, int] = {}

    # Writes are no coroutines of their own: each would be one more to go through when one is done.

    def create(self, key: str, value: bytes, ttl: int | None, origin: object) -> Coroutine[Any, Any, int]:
        """See ``Backend.create``."""
        call = self._backend.create(key, value, ttl, origin)
        return self._write("create", call, self._creating, key, "Txn call succeeded")

    def update(
        self, key: str, value: bytes, expected: int, ttl: int | None, origin: object
    ) -> Coroutine[Any, Any, int]:
        """See ``Backend.update``."""
        call = self._backend.update(key, value, expected, ttl, origin)
        return self._write("update", call, self._updating, key, "Txn call completed")

    def delete(self, key: str, expected: int, origin: object) -> Coroutine[Any, Any, int]:
        """See ``Backend.delete``."""
        return self._write("delete", self._backend.delete(key, expected, origin), self._deleting, key)

    async def _write(self, operation: str, call: Awaitable[int], name: str, key: str, last: str = "") -> int:
        outer = current()
        if outer is not None and outer.exported is not None:
            with Span(name, {"key": key}) as span:
                revision = await self._timed(operation, call)
                if last:
                    span.step(last)
                return revision
        began = perf_counter()
        try:
            return await call
        except Exception:
            self.failures[operation] = self.failures.get(operation, 0) + 1
            last = ""
            raise
        finally:
            ended = perf_counter()
            self._observe(operation, ended - began)
            if outer is not None:
                outer.note_call(name, {"key": key}, began, ended, last)

    async def get(self, key: str, revision: int) -> KeyValue | None:
        """See ``Backend.get``."""
        with Span(f"Get {self._backend.name}", {"key": key}):
            return await self._timed("get", self._backend.get(key, revision))

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        """See ``Backend.list``."""
        fields: Fields = {"key": prefix, "resourceVersion": revision, "limit": limit}
        with Span(f"List(recursive=true) {self._backend.name}", fields):
            listing = self._backend.list(prefix, start=start, limit=limit, revision=revision, counted=counted)
            return await self._timed("listWithCount" if counted else "list", listing)

    def current_revision(self, foreseen: Foreseen | None = None) -> Awaitable[int]:
        """See ``Backend.current_revision``; what was ``foreseen`` is only waited for."""
        asking = self._backend.current_revision() if foreseen is None else foreseen
        return self._timed("getCurrentResourceVersion", asking)

    async def _timed(self, operation: str, call: Awaitable[T]) -> T:
        began = perf_counter()
        try:
            return await call
        except Exception:
            self.failures[operation] = self.failures.get(operation, 0) + 1
            raise
        finally:
            self._observe(operation, perf_counter() - began)

    def _observe(self, operation: str, seconds: float) -> None:
        seen = self.durations.get(operation)
        if seen is None:
            seen = self.durations[operation] = Observations(CALL_BUCKETS)
        seen.observe(seconds)
