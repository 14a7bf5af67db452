"""A store that others write to as well, as an etcd is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import Event, Follower, StorageError
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher


class SharedStore(SQLiteBackend):
    """One that others write to as well; what they write is heard of by asking where the log stands, and not before."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.asked = 0
        self.others_write = False
        self._held: list[tuple[Follower, Sequence[Event], int]] = []

    def follow(self, follower: Follower) -> Any:
        store = self

        class Held:
            def receive(self, events: Sequence[Event], revision: int) -> None:
                store._held.append((follower, events, revision))
                if not store.others_write:
                    store._tell()

            def fail(self, error: StorageError) -> None:
                follower.fail(error)

        return super().follow(Held())

    def _tell(self) -> None:
        held, self._held = self._held, []
        for follower, events, revision in held:
            follower.receive(events, revision)

    def unseen_revision(self) -> int | None:
        return None

    async def current_revision(self) -> int:
        self.asked += 1
        self._tell()
        return await super().current_revision()


class Shared:
    """A config map ``default/a`` in a store that others write to."""

    def __init__(self, backend: SharedStore, store: Store) -> None:
        self.backend, self.store = backend, store

    async def others(self, finalizers: Sequence[str] | None) -> None:
        """Somebody else replaces the object, or (``None``) deletes it."""
        key = self.store.key("default", "a")
        found = await self.backend.get(key)
        assert found is not None
        self.backend.others_write = True
        if finalizers is None:
            await self.backend.delete(key, found.revision)
        else:
            metadata = {"name": "a", "namespace": "default", "uid": "another", "finalizers": finalizers}
            value = self.store.codec.to_stored(self.store.codec.encode({"metadata": metadata}))
            await self.backend.update(key, value, found.revision)
        self.backend.others_write = False


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Shared]:
    backend = SharedStore(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    store = StorageFactory(cacher).store("", "v1", "configmaps")
    await store.create(Context(namespace="default", now="2026-01-02T03:04:05Z"), {"metadata": {"name": "a"}})
    yield Shared(backend, store)
    await cacher.close()
    await backend.close()
