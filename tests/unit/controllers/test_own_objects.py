from typing import Any

from pilothouse.controllers.own_objects import (
    condition_of,
    create,
    create_missing,
    existing,
    remove,
    set_condition,
    update,
    update_status,
)
from pilothouse.registry.storage import StorageFactory


def config_map(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "namespace": "default"}, "data": data}


async def test_creating_what_exists_is_no_failure(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    assert await create(store, config_map(k="1")) is True
    assert await create(store, config_map(k="2")) is False
    assert await create_missing(store, config_map(k="3")) is False
    stored = await existing(store, "default", "a")
    assert stored is not None
    assert stored["data"] == {"k": "1"}


async def test_updating_and_removing_what_is_missing_is_no_failure(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    assert await update(store, "default", "a", lambda obj: obj) is False
    assert await remove(store, "default", "a") is False
    assert await existing(store, "default", "a") is None


async def test_a_change_that_declines_writes_nothing(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await create(store, config_map(k="1"))
    before = await existing(store, "default", "a")
    assert await update(store, "default", "a", lambda obj: None) is True
    assert await existing(store, "default", "a") == before


async def test_another_object_of_the_same_name_is_not_removed(storage: StorageFactory) -> None:
    store = storage.store("", "v1", "configmaps")
    await create(store, config_map())
    assert await remove(store, "default", "a", "11111111-1111-1111-1111-111111111111") is False
    stored = await existing(store, "default", "a")
    assert stored is not None
    assert await remove(store, "default", "a", stored["metadata"]["uid"]) is True


async def test_status_is_written_apart_from_the_rest(storage: StorageFactory) -> None:
    store = storage.store("networking.k8s.io", "v1", "servicecidrs")
    await create(store, {"metadata": {"name": "a"}, "spec": {"cidrs": ["10.0.0.0/24"]}})

    def change(obj: dict[str, Any]) -> dict[str, Any]:
        condition = {"type": "Ready", "status": "True", "reason": "", "message": ""}
        set_condition(obj, {**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        return {**obj, "spec": {"cidrs": ["10.9.0.0/24"]}}

    assert await update_status(store, "", "a", change)
    stored = await existing(store, "", "a")
    assert stored is not None
    assert stored["spec"]["cidrs"] == ["10.0.0.0/24"]
    assert (condition_of(stored, "Ready") or {})["status"] == "True"
    assert condition_of(stored, "Other") is None


def test_a_condition_takes_the_place_of_its_type() -> None:
    obj: dict[str, Any] = {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}
    set_condition(obj, {"type": "A", "status": "False"})
    assert sorted((c["type"], c["status"]) for c in obj["status"]["conditions"]) == [("A", "False"), ("B", "True")]
