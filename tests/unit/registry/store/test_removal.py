"""When admission is asked about a deletion and what it is shown; what a deletion makes of an old cache."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.endpoints.delete_options import options_from, options_object
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store import removal
from pilothouse.registry.store.removal import delete, delete_all
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import Entry

NOW = "2026-01-02T03:04:05Z"


def context() -> Context:
    return Context(namespace="default", now=NOW)


class Asked:
    """Remembers the periods of grace of what it is asked about."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.periods: list[int | None] = []
        self.settled: list[int | None] = []
        """What the options were settled on."""

    async def __call__(self, obj: Object, weight: int, grace: int | None) -> None:
        self.settled.append(grace)
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
    assert asked.settled == [30, 10]


async def test_ending_at_once_asks_before_the_mark_and_before_the_end(storage: StorageFactory) -> None:
    asked = Asked(await running_pod(storage))
    assert await asked.delete(grace_period_seconds=0, dry_run=["All"]) == [None]
    assert await asked.delete(grace_period_seconds=0) == [None, 0]


async def test_who_leaves_in_the_middle_leaves_nothing_half_done(storage: StorageFactory) -> None:
    left: list[bool] = []
    for turns in range(12):
        store = await running_pod(storage, f"p{turns}")
        options = DeleteOptions(grace_period_seconds=0)
        leaving = asyncio.get_running_loop().create_task(delete(store, context(), f"p{turns}", options))
        for _ in range(turns):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        left.append(leaving.cancelled())
        entry = store.cache.get(store.key("default", f"p{turns}"))
        assert entry is None or b"deletionTimestamp" not in entry.data
    assert left[0]


async def test_dropping_the_last_finalizer_asks_before_that_and_before_the_end(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["orphan"]}})
    assert await Asked(store).delete(propagation_policy="Background") == [None, None]


async def test_a_version_is_lost_with_the_last_finalizer(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    entry = await store.create(context(), {"metadata": {"name": "a", "finalizers": ["orphan"]}})
    options = DeleteOptions(propagation_policy="Background", precondition_version=str(entry.revision))
    with pytest.raises(
        StatusError, match=r"Precondition failed: ResourceVersion in precondition: , ResourceVersion in"
    ):
        await delete(store, context(), "a", options)
    assert await store.get("default", "a")


async def test_finalizers_ask_every_time(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    asked = Asked(store)
    assert [await asked.delete(), await asked.delete()] == [[None], [0]]


def test_admission_is_shown_preconditions_that_ask_for_nothing() -> None:
    assert options_object(options_from({"preconditions": {}}))["preconditions"] == {}
    assert "preconditions" not in options_object(options_from({}))


async def asking(shared: Any, **options: Any) -> int:
    """How often a deletion asks where the log stands."""
    before: int = shared.backend.asked
    await delete(shared.store, context(), "a", DeleteOptions(**options))
    return int(shared.backend.asked - before)


async def test_a_deletion_that_storage_accepts_asks_for_nothing_else(shared: Any) -> None:
    assert await asking(shared) == 0


async def test_what_others_deleted_is_not_found(shared: Any) -> None:
    await shared.others(None)
    with pytest.raises(StatusError, match="not found"):
        await asking(shared)


async def test_preconditions_are_held_against_what_others_wrote(shared: Any) -> None:
    await shared.others([])
    assert await asking(shared, precondition_uid="another") == 1


async def test_a_deletion_is_planned_anew_when_others_wrote_meanwhile(shared: Any) -> None:
    await shared.others(["example.com/hold"])
    assert await asking(shared) == 1
    entry = shared.store.cache.get(shared.store.key("default", "a"))
    assert entry is not None
    assert shared.store.decode(entry)["metadata"]["deletionTimestamp"]


async def test_nothing_to_do_and_dry_runs_are_held_against_what_others_wrote(shared: Any) -> None:
    await shared.others(["example.com/hold"])
    assert await asking(shared, dry_run=["All"]) == 1
    await asking(shared)
    await shared.others([])
    assert await asking(shared) == 1
    assert shared.store.cache.get(shared.store.key("default", "a")) is None


async def test_others_get_their_turn_while_many_are_deleted_without_waiting(
    storage: StorageFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, seen = 0.0, list[str]()

    async def take_time(*_: Any) -> None:
        nonlocal now
        now += 0.001
        seen.append("x")

    async def others() -> None:
        while True:
            seen.append("|")
            await asyncio.sleep(0)

    monkeypatch.setattr(removal, "delete", take_time)
    monkeypatch.setattr(removal, "perf_counter", lambda: now)
    task = asyncio.create_task(others())
    entries = [Entry(f"/{number}", b"{}", 1) for number in range(100)]
    await delete_all(storage.store("", "v1", "configmaps"), context(), entries, DeleteOptions())
    task.cancel()
    assert seen.count("x") == 100
    assert "xxxxx" not in "".join(seen)
