"""A backend that encrypts on the way in and decrypts on the way out; everything above it sees plain values.

Reads wait for keys that have to be fetched. The live feed must not wait, so a batch that needs such a key is put aside
with all that follow it, and handed on in order once the key is there; ``current_revision`` waits for that, because it
promises that followers have seen what it names.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from pilothouse.machinery.supervision import Supervisor
from pilothouse.storage.backends.contract import (
    Backend,
    Compacted,
    Conflict,
    Event,
    Feed,
    Follower,
    Foreseen,
    History,
    KeyValue,
    Page,
    StorageError,
)
from pilothouse.storage.backends.watching import watch_log
from pilothouse.storage.encryption.transformers import Transformers
from pilothouse.storage.encryption.transforming import KeyMissing, TransformFailed

logger = logging.getLogger(__name__)
_LARGE: Final = 64 * 1024
_SLICE: Final = 20


class EncryptedBackend:
    """Wraps a backend. ``transformers`` may be exchanged at any time."""

    def __init__(self, inner: Backend, transformers: Transformers, supervisor: Supervisor | None = None) -> None:
        self._inner = inner
        self.supervisor = supervisor or Supervisor("encryption")
        self.transformers = transformers
        self._receivers: set[_Receiver] = set()

    @property
    def name(self) -> str:
        """As the backend below."""
        return self._inner.name

    @property
    def is_open(self) -> bool:
        """As the backend below."""
        return self._inner.is_open

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    # Writing

    async def create(self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None) -> int:
        return await self._inner.create(key, await self._sealed(key, value), ttl_seconds, origin)

    async def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> int:
        try:
            return await self._inner.update(key, await self._sealed(key, value), expected, ttl_seconds, origin)
        except Conflict as conflict:
            raise await self._opened_conflict(conflict) from None

    async def delete(self, key: str, expected: int, origin: object = None) -> int:
        try:
            return await self._inner.delete(key, expected, origin)
        except Conflict as conflict:
            raise await self._opened_conflict(conflict) from None

    async def _sealed(self, key: str, value: bytes) -> bytes:
        transformer = self.transformers.find(key)
        if transformer is None:
            return value
        try:
            if len(value) > _LARGE:
                return await asyncio.to_thread(transformer.to_storage, value, key.encode())
            return transformer.to_storage(value, key.encode())
        except TransformFailed as failure:
            raise StorageError(f"unable to encrypt {key!r}: {failure}") from None

    async def _opened_conflict(self, conflict: Conflict) -> Conflict:
        current = conflict.current
        return Conflict(conflict.key, conflict.expected, None if current is None else await self._opened(current))

    # Reading

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        found = await self._inner.get(key, revision)
        return None if found is None else await self._opened(found)

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        page = await self._inner.list(prefix, start=start, limit=limit, revision=revision, counted=counted)
        items: list[KeyValue] = []
        for number, item in enumerate(page.items):
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            items.append(await self._opened(item))
        return replace(page, items=items)

    async def count(self, prefix: str) -> int:
        return await self._inner.count(prefix)

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        page = await self._inner.history(prefix, after, limit)
        return replace(page, events=[await self._opened_event(event) for event in page.events])

    async def is_stale(self, key: str) -> bool:
        """Whether a value should be written anew: another provider or key would be used for it today."""
        transformer = self.transformers.find(key)
        found = None if transformer is None else await self._inner.get(key)
        if transformer is None or found is None:
            return False
        while True:
            try:
                return transformer.from_storage(found.value, key.encode())[1]
            except KeyMissing as missing:
                await _fetch(missing, key)
            except TransformFailed as failure:
                raise _unreadable(key, failure) from None

    async def _opened(self, item: KeyValue) -> KeyValue:
        while True:
            try:
                if len(item.value) > _LARGE:
                    return replace(item, value=await asyncio.to_thread(self.open_value, item.key, item.value))
                return replace(item, value=self.open_value(item.key, item.value))
            except KeyMissing as missing:
                await _fetch(missing, item.key)
            except TransformFailed as failure:
                raise _unreadable(item.key, failure) from None

    async def _opened_event(self, event: Event) -> Event:
        previous = None if event.previous is None else await self._opened(event.previous)
        value = event.value
        if value is not None:
            value = (await self._opened(KeyValue(event.key, value, event.revision, 0))).value
        return replace(event, value=value, previous=previous)

    def open_value(self, key: str, value: bytes) -> bytes:
        """The plain value. Raises TransformFailed and KeyMissing."""
        transformer = self.transformers.find(key)
        return value if transformer is None else transformer.from_storage(value, key.encode())[0]

    # Following

    def follow(self, follower: Follower) -> Feed:
        receiver = _Receiver(self, self._inner, follower)
        self._receivers.add(receiver)
        return receiver

    def forget(self, receiver: _Receiver) -> None:
        self._receivers.discard(receiver)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
        return watch_log(self, prefix, after)

    async def current_revision(self) -> int:
        return await self._received(self._inner.current_revision())

    def foresee(self) -> Foreseen | None:
        foreseen = self._inner.foresee()
        return None if foreseen is None else _Received(self._received, foreseen)

    async def _received(self, asking: Awaitable[int]) -> int:
        """A revision, once followers have seen it."""
        revision = await asking
        for receiver in tuple(self._receivers):
            await receiver.idle()
        return revision

    def unseen_revision(self) -> int | None:
        if any(receiver.waiting for receiver in self._receivers):
            return None
        return self._inner.unseen_revision()

    async def compact(self, revision: int) -> None:
        await self._inner.compact(revision)

    async def compacted_revision(self) -> int:
        return await self._inner.compacted_revision()


class _Received:
    """A question on its way, whose answer others have to have received."""

    def __init__(self, received: Callable[[Awaitable[int]], Awaitable[int]], foreseen: Foreseen) -> None:
        self._received, self._foreseen = received, foreseen

    def __await__(self) -> Generator[Any, Any, int]:
        return self._received(self._foreseen).__await__()


class _Receiver:
    """Stands between the inner feed and a follower; is the follower's feed as well."""

    def __init__(self, backend: EncryptedBackend, inner: Backend, follower: Follower) -> None:
        self._backend, self._follower = backend, follower
        self._aside: deque[tuple[Sequence[Event], int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._feed = inner.follow(self)

    @property
    def revision(self) -> int:
        return self._feed.revision

    @revision.setter
    def revision(self, value: int) -> None:
        raise AttributeError("a feed's revision is not to be changed")

    @property
    def waiting(self) -> bool:
        """Whether something was put aside."""
        return bool(self._aside)

    def receive(self, events: Sequence[Event], revision: int) -> None:
        if not self._aside:
            try:
                opened = [self._open(event) for event in events]
            except KeyMissing:
                pass
            else:
                self._follower.receive(opened, revision)
                return
        self._aside.append((events, revision))
        if self._task is None or self._task.done():
            self._task = self._backend.supervisor.spawn("waiting for keys", self._work_off(), self._give_up)

    def fail(self, error: StorageError) -> None:
        self._aside.clear()
        self._follower.fail(error)

    def _give_up(self, error: BaseException) -> None:
        """What was put aside is lost: let those above read everything anew."""
        self.fail(Compacted(self.revision, self.revision))

    def close(self) -> None:
        self._aside.clear()
        if self._task is not None:
            self._task.cancel()
        self._feed.close()
        self._backend.forget(self)

    async def idle(self) -> None:
        """Wait until nothing is put aside."""
        while self._aside and self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    async def _work_off(self) -> None:
        while self._aside:
            events, revision = self._aside[0]
            opened = [await self._open_patiently(event) for event in events]
            if self._aside:
                self._aside.popleft()
                self._follower.receive(opened, revision)

    async def _open_patiently(self, event: Event) -> Event:
        while True:
            try:
                return self._open(event)
            except KeyMissing as missing:
                try:
                    await missing.fetch()
                except TransformFailed as failure:
                    logger.error("cannot decrypt %s at revision %d: %s", event.key, event.revision, failure)
                    return event

    def _open(self, event: Event) -> Event:
        if event.value is None:
            return event
        try:
            return replace(event, value=self._backend.open_value(event.key, event.value))
        except TransformFailed as failure:
            # The cache cannot decode it and leaves it out.
            logger.error("cannot decrypt %s at revision %d: %s", event.key, event.revision, failure)
            return event


async def _fetch(missing: KeyMissing, key: str) -> None:
    try:
        await missing.fetch()
    except TransformFailed as failure:
        raise _unreadable(key, failure) from None


def _unreadable(key: str, failure: TransformFailed) -> StorageError:
    return StorageError(f'unable to transform key "{key}": {failure}')
