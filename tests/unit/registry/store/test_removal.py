"""When admission is asked about a deletion and what it is shown; what a deletion makes of an old cache."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.endpoints.verbs.delete import options_from, options_object
from pilothouse.machinery.errors import StatusError
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import Event, Follower, StorageError
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher

NOW = "2026-01-02T03:04:05Z"
Object = dict[str, Any]


def context() -> Context:
    return Context(namespace="default", now=NOW)


class Asked:
    """Remembers the periods of grace of what it is asked about."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.periods: list[int | None] = []

    async def __call__(self, obj: Object) -> None:
        self.periods.append(obj["metadata"].get("deletionGracePeriodSeconds"))

    async def delete(self, **options: Any) -> list[int | None]:
        """What one deletion asks."""
        self.periods = []
        await delete(self._store, context(), "a", DeleteOptions(**options), self)
        return self.periods


async def running_pod(storage: StorageFactory, name: str = "a") -> Store:
    store = storage.store("", "v1", "pods")
    spec: Object = {
        "containers": [{"name": "c", "image": "i"}],
        "nodeName": "somewhere",
        "terminationGracePeriodSeconds": 30,
    }
    pod: Object = {"metadata": {"name": name}, "spec": spec}
    store.strategy.default(pod)
    await store.create(context(), pod)
    return store


async def test_a_running_period_of_grace_asks_nobody(storage: StorageFactory) -> None:
    asked = Asked(await running_pod(storage))
    assert await asked.delete() == [None]
    assert await asked.delete() == []
    assert await asked.delete(grace_period_seconds=40) == []
    assert await asked.delete(grace_period_seconds=10) == [30]


async def test_ending_at_once_asks_before_the_mark_and_before_the_end(storage: StorageFactory) -> None:
    asked = Asked(await running_pod(storage))
    assert await asked.delete(grace_period_seconds=0, dry_run=["All"]) == [None]
    assert await asked.delete(grace_period_seconds=0) == [None, 0]


async def test_dropping_the_last_finalizer_asks_before_that_and_before_the_end(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["orphan"]}})
    assert await Asked(store).delete(propagation_policy="Background") == [None, None]


async def test_finalizers_ask_every_time(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    asked = Asked(store)
    assert [await asked.delete(), await asked.delete()] == [[None], [0]]


def test_admission_is_shown_preconditions_that_ask_for_nothing() -> None:
    assert options_object(options_from({"preconditions": {}}))["preconditions"] == {}
    assert "preconditions" not in options_object(options_from({}))


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
    """A config map in a store that others write to."""

    def __init__(self, backend: SharedStore, store: Store) -> None:
        self.backend, self.store = backend, store

    async def delete(self, **options: Any) -> int:
        """How often it was asked where the log stands."""
        before = self.backend.asked
        await delete(self.store, context(), "a", DeleteOptions(**options))
        return self.backend.asked - before

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
    await store.create(context(), {"metadata": {"name": "a"}})
    yield Shared(backend, store)
    await cacher.close()
    await backend.close()


async def test_a_deletion_that_storage_accepts_asks_for_nothing_else(shared: Shared) -> None:
    assert await shared.delete() == 0


async def test_what_others_deleted_is_not_found(shared: Shared) -> None:
    await shared.others(None)
    with pytest.raises(StatusError, match="not found"):
        await shared.delete()


async def test_preconditions_are_held_against_what_others_wrote(shared: Shared) -> None:
    await shared.others([])
    assert await shared.delete(precondition_uid="another") == 1


async def test_a_deletion_is_planned_anew_when_others_wrote_meanwhile(shared: Shared) -> None:
    await shared.others(["example.com/hold"])
    assert await shared.delete() == 1
    entry = shared.store.cache.get(shared.store.key("default", "a"))
    assert entry is not None
    assert shared.store.decode(entry)["metadata"]["deletionTimestamp"]


async def test_nothing_to_do_and_dry_runs_are_held_against_what_others_wrote(shared: Shared) -> None:
    await shared.others(["example.com/hold"])
    assert await shared.delete(dry_run=["All"]) == 1
    await shared.delete()
    await shared.others([])
    assert await shared.delete() == 1
    assert shared.store.cache.get(shared.store.key("default", "a")) is None
