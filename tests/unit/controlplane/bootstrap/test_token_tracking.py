import asyncio

import pytest

from pilothouse.controllers.own_objects import create, existing, remove
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controlplane.bootstrap.token_tracking import CREATION_SECONDS, NAME, NAMESPACE, TokenTracking, is_date
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store

DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 10 * DAY

    def __call__(self) -> float:
        return self.now


async def since(store: Store) -> str | None:
    stored = await existing(store, NAMESPACE, NAME)
    return None if stored is None else str(stored["data"]["since"])


async def test_the_config_map_is_made_and_kept(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store, clock = storage.store("", "v1", "configmaps"), Clock()
    tracking = TokenTracking(store, informers, clock)
    await tracking.reconcile(NAME)
    assert await since(store) == "1970-01-11"
    clock.now += DAY
    await tracking.reconcile(NAME)
    assert await since(store) == "1970-01-11"


async def test_a_removed_config_map_comes_back_after_half_an_hour(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store, clock = storage.store("", "v1", "configmaps"), Clock()
    tracking = TokenTracking(store, informers, clock)
    await tracking.reconcile(NAME)
    await remove(store, NAMESPACE, NAME)
    clock.now += CREATION_SECONDS - 1
    await tracking.reconcile(NAME)
    assert await since(store) is None
    clock.now += 1
    await tracking.reconcile(NAME)
    assert await since(store) is not None
    await tracking.controller.stop()


async def test_a_date_that_cannot_be_read_is_replaced_when_it_is_seen(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> None:
    store = storage.store("", "v1", "configmaps")
    tracking = TokenTracking(store, informers, Clock())
    await create(store, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {"since": "yesterday", "k": "v"}})
    await tracking.start(supervisor)
    watcher = await store.cache.watch(initial=True)
    async with asyncio.timeout(120):
        while await since(store) != "1970-01-11":
            assert await watcher.next_batch()
    watcher.stop()
    stored = await existing(store, NAMESPACE, NAME)
    assert stored is not None
    assert stored["data"]["k"] == "v"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-16", True),
        ("2024-02-29", True),
        ("2026-02-29", False),
        ("2026-1-1", False),
        ("20261116", False),
        ("2026-11-16T00:00:00Z", False),
        ("", False),
    ],
)
def test_only_days_of_the_calendar_are_dates(text: str, expected: bool) -> None:
    assert is_date(text) is expected
