"""Reading other objects: what is remembered is forgotten as soon as it is no longer true."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.objects import Objects
from pilothouse.apis.strategy import Context
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.removal import delete


async def test_nothing_is_certain_before_the_cache_is_loaded(storage: StorageFactory) -> None:
    objects = Objects(storage.store("", "v1", "limitranges"))
    assert not objects.is_empty
    await objects.ready()
    assert objects.is_empty


async def test_objects_that_come_change_and_go(storage: StorageFactory, put: Any, context: Context) -> None:
    objects = Objects(storage.store("", "v1", "configmaps"))
    await objects.ready()
    assert objects.get("ns", "a") is None
    await put("/v1/configmaps", "a", "ns", data={"k": "1"})
    first = objects.get("ns", "a")
    assert not objects.is_empty
    assert first is not None
    assert objects.get("ns", "a") is first
    await put("/v1/configmaps", "a", "ns", data={"k": "2"})
    changed = objects.get("ns", "a")
    assert changed is not None
    assert changed["data"] == {"k": "2"}
    context.namespace = "ns"
    await delete(objects.store, context, "a", DeleteOptions())
    assert objects.get("ns", "a") is None
    assert objects.is_empty


async def test_what_is_made_of_all_objects(storage: StorageFactory, put: Any) -> None:
    objects = Objects(storage.store("", "v1", "configmaps"))
    await objects.ready()
    made = []

    def count() -> int:
        made.append(len(objects.list()))
        return made[-1]

    assert [objects.remembered("count", count) for _ in range(2)] == [0, 0]
    await put("/v1/configmaps", "a", "ns")
    assert [objects.remembered("count", count) for _ in range(2)] == [1, 1]
    assert made == [0, 1]
