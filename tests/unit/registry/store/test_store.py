"""The generic store: what it writes, what it refuses, and that no race loses a write."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import orjson
import pytest

from pilothouse.apis.strategy import Context
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.objects import Object
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store, same_object

NOW = "2026-01-02T03:04:05Z"


def context(**more: Any) -> Context:
    return Context(namespace="default", now=NOW, **more)


def config_map(name: str = "a", **more: Any) -> Object:
    return {"metadata": {"name": name}, **more}


@pytest.fixture
def store(storage: StorageFactory) -> Store:
    return storage.store("", "v1", "configmaps")


def setting(key: str, value: str) -> Any:
    """A change as a patch makes it: it keeps the version of what it was given."""

    async def change(old: Object | None) -> Object:
        assert old is not None
        return {**old, "data": {**old.get("data", {}), key: value}}

    return change


def replacing(obj: Object) -> Any:
    """A change as a PUT makes it."""

    async def change(old: Object | None) -> Object:
        return orjson.loads(orjson.dumps(obj))

    return change


async def refusal(action: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await action
    return caught.value


async def test_create_fills_in_metadata(store: Store) -> None:
    entry = await store.create(context(), config_map(data={"x": "1"}))
    metadata = store.decode(entry)["metadata"]
    assert metadata == {
        "name": "a",
        "namespace": "default",
        "uid": metadata["uid"],
        "resourceVersion": str(entry.revision),
        "creationTimestamp": NOW,
    }
    assert list(metadata) == ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
    assert await store.get("default", "a") is entry


async def test_create_drops_what_only_the_server_sets(store: Store) -> None:
    marks = {"selfLink": "/x", "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 5, "uid": "mine"}
    entry = await store.create(context(), {"metadata": {"name": "a", **marks}})
    metadata = store.decode(entry)["metadata"]
    assert metadata["uid"] != "mine"
    assert set(metadata) == {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}


@pytest.mark.parametrize("version", ["0", "", "x"])
async def test_versions_that_name_none_do_not_keep_from_creating(store: Store, version: str) -> None:
    entry = await store.create(context(), {"metadata": {"name": "a", "resourceVersion": version}})
    assert store.decode(entry)["metadata"]["resourceVersion"] == str(entry.revision)


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        ({"name": "a", "resourceVersion": "5"}, 500, "resourceVersion should not be set on objects to be created"),
        ({"name": "A", "resourceVersion": "5"}, 422, 'ConfigMap "A" is invalid: metadata.name: Invalid value: "A"'),
        ({"name": "a", "namespace": "b"}, 400, "the namespace of the provided object does not match the namespace"),
        ({}, 422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
        ({"name": "A"}, 422, 'ConfigMap "A" is invalid: metadata.name: Invalid value: "A"'),
        ({"generateName": "Web-"}, 422, 'metadata.generateName: Invalid value: "Web-"'),
        ({"name": "a", "labels": {"a b": ""}}, 422, 'metadata.labels: Invalid value: "a b"'),
    ],
)
async def test_create_refuses(store: Store, metadata: Object, code: int, message: str) -> None:
    error = await refusal(store.create(context(), {"metadata": metadata}))
    assert error.code == code
    assert message in error.message
    assert store.cache.entries() == []


async def test_create_of_what_exists(store: Store) -> None:
    await store.create(context(), config_map())
    error = await refusal(store.create(context(), config_map()))
    assert (error.code, error.reason, error.message) == (409, "AlreadyExists", 'configmaps "a" already exists')


async def test_create_of_what_is_being_deleted(store: Store) -> None:
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["x.example/y"]}})
    await delete(store, context(), "a", DeleteOptions())
    error = await refusal(store.create(context(), config_map()))
    assert error.message == 'object is being deleted: configmaps "a" already exists'


async def test_generated_names_are_free_and_valid(store: Store) -> None:
    made = [await store.create(context(), {"metadata": {"generateName": "web-"}}) for _ in range(20)]
    names = {entry.name for entry in made}
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == len("web-") + 5 for name in names)


async def test_a_generated_name_gives_up_after_some_attempts(store: Store) -> None:
    class Stuck:
        def random(self) -> float:
            return 0.0

    store._random = Stuck()  # type: ignore[assignment]
    await store.create(context(), {"metadata": {"generateName": "web-"}})
    error = await refusal(store.create(context(), {"metadata": {"generateName": "web-"}}))
    assert (error.code, error.reason, error.retry_after) == (409, "AlreadyExists", 1)
    assert "not able to generate a unique name" in error.message


async def test_dry_runs_leave_no_trace(store: Store) -> None:
    entry = await store.create(context(dry_run=True), config_map("b"))
    assert "resourceVersion" not in store.decode(entry)["metadata"]
    kept = await store.create(context(), config_map(data={"x": "1"}))
    updated, _ = await store.update(context(dry_run=True), "a", setting("x", "2"))
    assert store.decode(updated)["data"] == {"x": "2"}
    await delete(store, context(dry_run=True), "a", DeleteOptions())
    assert store.cache.entries() == [kept]
    assert (await refusal(store.create(context(dry_run=True), config_map()))).reason == "AlreadyExists"


async def test_an_update_that_changes_nothing_writes_nothing(store: Store) -> None:
    kept = await store.create(context(), config_map(data={"x": "1"}))
    entry, created = await store.update(context(), "a", setting("x", "1"))
    assert (entry, created) == (kept, False)


async def test_an_update_keeps_what_only_the_server_sets(store: Store) -> None:
    first = store.decode(await store.create(context(), config_map()))["metadata"]
    wanted = {"metadata": {"name": "a", "creationTimestamp": None, "generation": 7}, "data": {"x": "1"}}
    entry, _ = await store.update(context(), "a", replacing(wanted))
    metadata = store.decode(entry)["metadata"]
    assert metadata == {**first, "resourceVersion": str(entry.revision)}


async def test_an_update_may_insist_on_a_version(store: Store) -> None:
    first = await store.create(context(), config_map())
    await store.update(context(), "a", setting("x", "1"))
    stale = {"metadata": {"name": "a", "resourceVersion": str(first.revision)}}
    error = await refusal(store.update(context(), "a", replacing(stale)))
    assert (error.code, error.reason) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in error.message


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("x", 'strconv.ParseUint: parsing "x": invalid syntax'),
        ("9" * 5000, "value out of range"),
    ],
)
async def test_an_update_with_a_version_that_is_none(store: Store, version: str, message: str) -> None:
    await store.create(context(), config_map())
    wanted = {"metadata": {"name": "a", "resourceVersion": version}}
    error = await refusal(store.update(context(), "a", replacing(wanted)))
    assert error.code == 500
    assert message in error.message


async def test_an_update_of_nothing(store: Store, storage: StorageFactory) -> None:
    assert (await refusal(store.update(context(), "a", replacing(config_map())))).code == 404
    leases = storage.store("coordination.k8s.io", "v1", "leases")
    lease = {"metadata": {"name": "a", "resourceVersion": "77"}, "spec": {}}
    entry, created = await leases.update(context(), "a", replacing(lease))
    assert created
    assert leases.decode(entry)["metadata"]["resourceVersion"] == str(entry.revision)


async def test_an_update_that_must_name_a_version(storage: StorageFactory) -> None:
    leases = storage.store("coordination.k8s.io", "v1", "leases")
    lease = {"metadata": {"name": "a"}, "spec": {}}
    await leases.update(context(), "a", replacing(lease))
    error = await refusal(leases.update(context(), "a", replacing(lease)))
    assert error.code == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in error.message


async def test_the_last_finalizer_takes_the_object_along(store: Store) -> None:
    await store.create(context(), {"metadata": {"name": "a", "finalizers": ["x.example/y"]}})
    entry, gone = await delete(store, context(), "a", DeleteOptions())
    metadata = store.decode(entry)["metadata"]
    assert not gone
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (NOW, 0)

    async def drop(old: Object | None) -> Object:
        assert old is not None
        return {**old, "metadata": {k: v for k, v in old["metadata"].items() if k != "finalizers"}}

    await store.update(context(), "a", drop)
    assert store.cache.entries() == []


async def test_concurrent_patches_lose_nothing(store: Store) -> None:
    await store.create(context(), config_map())
    await asyncio.gather(*(store.update(context(), "a", setting(f"k{n}", "1")) for n in range(40)))
    assert len(store.decode(await store.get("default", "a"))["data"]) == 40


async def test_concurrent_puts_of_one_version_have_one_winner(store: Store) -> None:
    first = await store.create(context(), config_map())
    wanted = [
        {"metadata": {"name": "a", "resourceVersion": str(first.revision)}, "data": {"winner": str(n)}}
        for n in range(20)
    ]
    results = await asyncio.gather(
        *(store.update(context(), "a", replacing(obj)) for obj in wanted), return_exceptions=True
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    lost = [result for result in results if isinstance(result, StatusError)]
    assert (len(won), {error.reason for error in lost}) == (1, {"Conflict"})
    assert await store.get("default", "a") is won[0][0]


async def test_concurrent_creates_have_one_winner(store: Store) -> None:
    results = await asyncio.gather(
        *(store.create(context(), config_map(data={"n": str(n)})) for n in range(20)), return_exceptions=True
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert {result.reason for result in results if isinstance(result, StatusError)} == {"AlreadyExists"}


async def test_concurrent_creates_by_update_become_updates(store: Store) -> None:
    """As with apply: whoever comes second finds the object and changes it."""

    def adding(key: str) -> Any:
        async def change(old: Object | None) -> Object:
            base = config_map(data={}) if old is None else old
            await asyncio.sleep(0)
            return {**base, "data": {**base.get("data", {}), key: "1"}}

        return change

    results = await asyncio.gather(
        *(store.update(context(), "a", adding(f"k{n}"), create=True) for n in range(20)),
    )
    assert sum(created for _, created in results) == 1
    assert len(store.decode(await store.get("default", "a"))["data"]) == 20


async def test_concurrent_deletes_have_one_winner(store: Store) -> None:
    await store.create(context(), config_map())
    results = await asyncio.gather(
        *(delete(store, context(), "a", DeleteOptions()) for _ in range(10)), return_exceptions=True
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert {result.code for result in results if isinstance(result, StatusError)} == {404}


async def test_patches_against_deletes_and_creates(store: Store) -> None:
    """Whatever the order: every acknowledged patch was made to the object it saw, and nothing comes back to life."""
    acknowledged: list[str] = []

    async def patch(number: int) -> None:
        try:
            entry, _ = await store.update(context(), "a", setting(f"k{number}", "1"))
        except StatusError as error:
            assert error.code == 404
        else:
            acknowledged.append(store.decode(entry)["metadata"]["uid"])

    async def churn() -> None:
        for _ in range(10):
            await store.create(context(), config_map())
            await asyncio.sleep(0)
            await delete(store, context(), "a", DeleteOptions())

    await asyncio.gather(churn(), *(patch(number) for number in range(60)))
    assert store.cache.entries() == []


def test_same_object_ignores_the_type() -> None:
    one = {"kind": "A", "metadata": {"name": "a"}, "data": {"x": "1"}}
    assert same_object(one, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    assert not same_object(one, {"metadata": {"name": "a"}, "data": {"x": "2"}})
    assert not same_object(one, {"metadata": {"name": "b"}, "data": {"x": "1"}})
    assert not same_object(one, {"metadata": {"name": "a"}, "data": {"x": "1"}, "immutable": True})


async def test_heavy_objects_are_judged_in_a_thread(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bool] = []

    def note(*_: Any) -> list[Any]:
        judged.append(threading.current_thread() is threading.main_thread())
        return []

    monkeypatch.setattr(store.strategy, "validate", note)
    monkeypatch.setattr(store.strategy, "validate_update", note)
    monkeypatch.setattr(store.strategy, "is_heavy", lambda obj: bool(obj.get("data")))
    await store.create(context(), config_map())
    await store.update(context(), "a", setting("k", "v"))
    await store.create(context(), config_map("b", data={"k": "v"}))
    assert judged == [True, False, False]


async def test_who_change_one_object_at_once_take_turns(store: Store) -> None:
    await store.create(context(), config_map())
    made = 0

    def counted(key: str) -> Any:
        change = setting(key, "1")

        async def counting(old: Object | None) -> Object:
            nonlocal made
            made += 1
            return await change(old)

        return counting

    await asyncio.gather(*(store.update(context(), "a", counted(f"k{number}")) for number in range(20)))
    assert len((orjson.loads((await store.get("default", "a")).data))["data"]) == 20
    assert made == 20  # none was made from what another was about to replace


async def test_a_dry_run_is_held_against_what_others_wrote(shared: Any) -> None:
    await shared.others(["example.com/hold"])
    entry, _ = await shared.store.update(context(dry_run=True), "a", setting("k", "v"))
    assert orjson.loads(entry.data)["metadata"]["finalizers"] == ["example.com/hold"]
