import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.admission.objects import Objects
from pilothouse.controllers.own_objects import create, remove, update
from pilothouse.controllers.runtime.indexer import BY_OWNER_UID, copy_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import labels
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.workers import LONG
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import Unavailable
from pilothouse.storage.cacher import Cacher


def config_map(name: str, namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": {}}


def set_data(value: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda obj: {**obj, "data": {"k": value}}


class Heard:
    """A handler that notes what it is told; raises for a name as often as told."""

    def __init__(self, failing: dict[str, int] | None = None) -> None:
        self.events: list[str] = []
        self.failing = failing or {}
        self._more = asyncio.Event()

    def register(self, informer: Informer) -> None:
        informer.add_handler(self.on_add, self.on_update, self.on_delete, name="test")

    def on_add(self, obj: dict[str, Any]) -> None:
        self._note("add", obj)

    def on_update(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        assert old["metadata"]["name"] == new["metadata"]["name"]
        self._note("update", new)

    def on_delete(self, obj: dict[str, Any]) -> None:
        self._note("delete", obj)

    def _note(self, what: str, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        if self.failing.get(name):
            self.failing[name] -= 1
            raise RuntimeError("not yet")
        self.events.append(f"{what} {name} {(obj.get('data') or {}).get('k', '')}".strip())
        self._more.set()

    async def until(self, what: str) -> None:
        async with asyncio.timeout(120):
            while what not in self.events:
                self._more.clear()
                await self._more.wait()


@pytest.fixture
def store(storage: StorageFactory) -> Store:
    return storage.store("", "v1", "configmaps")


@pytest.fixture
async def informer(informers: InformerFactory) -> Informer:
    return informers.of("", "v1", "configmaps")


async def test_what_there_is_comes_first_and_then_every_change(store: Store, informers: InformerFactory) -> None:
    await create(store, config_map("old"))
    heard, informer = Heard(), informers.of("", "v1", "configmaps")
    assert not informer.has_synced
    heard.register(informer)
    await informer.wait_synced()
    assert heard.events == ["add old"]
    await create(store, config_map("new"))
    await update(store, "default", "new", set_data("1"))
    await remove(store, "default", "old")
    await heard.until("delete old")
    assert heard.events == ["add old", "add new", "update new 1", "delete old"]


async def test_all_share_one_informer_and_its_objects(store: Store, informers: InformerFactory) -> None:
    await create(store, config_map("a"))
    informer = informers.of("", "v1", "configmaps")
    assert informers.of("", "v1", "configmaps") is informer
    await informer.wait_synced()
    first: list[Any] = []
    second: list[Any] = []
    informer.add_handler(first.append)
    registration = informer.add_handler(second.append)
    assert registration.has_synced
    assert first[0] is second[0] is informer.lister.get("default", "a")
    assert (first[0]["kind"], first[0]["apiVersion"]) == ("ConfigMap", "v1")
    assert copy_of(first[0]) == first[0] and copy_of(first[0]) is not first[0]


async def test_admission_and_informers_share_what_is_decoded(store: Store, informer: Informer) -> None:
    await create(store, config_map("a"))
    await informer.wait_synced()
    heard = Heard()
    heard.register(informer)
    await heard.until("add a")
    read = Objects(store).get("default", "a")
    known = informer.lister.get("default", "a")
    assert read is not None and known is not None
    assert read["metadata"] is known["metadata"]


async def test_a_handler_that_is_removed_hears_nothing_more(store: Store, informer: Informer) -> None:
    heard, other = Heard(), Heard()
    registration = informer.add_handler(heard.on_add)
    other.register(informer)
    await informer.wait_synced()
    informer.remove_handler(registration)
    await create(store, config_map("a"))
    await other.until("add a")
    assert heard.events == []


async def test_objects_are_found_by_name_namespace_labels_and_index(store: Store, informer: Informer) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
    await create(store, config_map("a", labels={"app": "web"}))
    await create(store, config_map("b", ownerReferences=[owner]))
    await create(store, config_map("a", "other"))
    informer.add_index(BY_OWNER_UID)
    await informer.wait_synced()
    informer.add_index("by-length", lambda obj: [str(len(obj["metadata"]["name"]))])
    lister, names = informer.lister, lambda found: sorted(obj["metadata"]["name"] for obj in found)
    assert len(lister) == 3
    assert names(lister.list("default")) == ["a", "b"]
    assert names(lister.list(selector=labels.parse("app=web"))) == ["a"]
    assert names(lister.by_index(BY_OWNER_UID, "u-1")) == ["b"]
    assert lister.by_index(BY_OWNER_UID, "u-2") == []
    assert names(lister.by_index("by-length", "1")) == ["a", "a", "b"]
    heard = Heard()
    heard.register(informer)
    await remove(store, "default", "b")
    await heard.until("delete b")
    assert lister.by_index(BY_OWNER_UID, "u-1") == []
    assert lister.index_values(BY_OWNER_UID) == set()


async def test_an_index_that_cannot_read_an_object_leaves_it_out(store: Store, informer: Informer) -> None:
    await create(store, config_map("a"))
    await informer.wait_synced()
    informer.add_index("broken", lambda obj: obj["spec"]["nodeName"])
    assert informer.lister.index_values("broken") == set()


async def test_one_namespace_or_one_object_can_be_had_alone(store: Store, informers: InformerFactory) -> None:
    heard, mine = Heard(), Heard()
    heard.register(informers.of("", "v1", "configmaps", "kube-system"))
    mine.register(informers.of("", "v1", "configmaps", "kube-system", "mine"))
    await informers.wait_synced()
    await create(store, config_map("mine"))
    await create(store, config_map("mine-too", "kube-system"))
    await create(store, config_map("mine", "kube-system"))
    await remove(store, "kube-system", "mine")
    await heard.until("delete mine")
    await mine.until("delete mine")
    assert heard.events == ["add mine-too", "add mine", "delete mine"]
    assert mine.events == ["add mine", "delete mine"]


async def test_a_version_other_than_the_stored_one_is_converted(
    storage: StorageFactory, informers: InformerFactory
) -> None:
    informer = informers.of("autoscaling", "v1", "horizontalpodautoscalers")
    await informer.wait_synced()
    assert len(informer.lister) == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await informers.of("example.com", "v1", "unknown").wait_synced()


# However an informer is killed, it comes back


async def test_a_handler_that_raises_is_told_again_and_others_are_not_disturbed(
    store: Store, informers: InformerFactory, informer: Informer
) -> None:
    failing, steady = Heard({"bad": 2}), Heard()
    failing.register(informer)
    steady.register(informer)
    await informer.wait_synced()
    await create(store, config_map("bad"))
    await create(store, config_map("good"))
    await update(store, "default", "bad", set_data("1"))
    await failing.until("add bad 1")
    await steady.until("update bad 1")
    assert failing.events == ["add good", "add bad 1"]
    assert steady.events == ["add bad", "add good", "update bad 1"]
    assert "pilothouse_informer_handler_failures_total" in "".join(
        line for each in informers.instruments() for line in each.lines()
    )


async def test_a_handler_that_keeps_failing_shows(store: Store, informers: InformerFactory, informer: Informer) -> None:
    failing = Heard({"bad": 3})
    failing.register(informer)
    await informer.wait_synced()
    await create(store, config_map("bad"))
    async with asyncio.timeout(120):
        while not informers.errors():
            await asyncio.sleep(0.001)
    assert informers.errors() == ["test of configmaps fails on default/bad"]
    await failing.until("add bad")
    assert informers.errors() == []


async def test_a_task_that_is_cancelled_comes_back(store: Store, informer: Informer) -> None:
    heard = Heard()
    heard.register(informer)
    await create(store, config_map("a"))
    await informer.wait_synced()
    for task in asyncio.all_tasks():
        if task.get_name() == "informer of configmaps":
            task.cancel()
    await asyncio.sleep(0)
    await remove(store, "default", "a")
    await create(store, config_map("b"))
    await heard.until("add b")
    assert heard.events == ["add a", "delete a", "add b"]


async def test_a_watch_that_fails_is_taken_up_again(store: Store, cacher: Cacher, informer: Informer) -> None:
    heard = Heard()
    heard.register(informer)
    await create(store, config_map("a"))
    await create(store, config_map("b"))
    await informer.wait_synced()
    await heard.until("add b")
    store.cache.reset(Unavailable("the store is away"))
    await remove(store, "default", "a")
    await create(store, config_map("c"))
    await heard.until("add c")
    assert sorted(heard.events) == ["add a", "add b", "add c", "delete a"]


async def test_a_store_that_cannot_be_read_is_asked_again(
    store: Store, informers: InformerFactory, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(store, config_map("a"))
    real, failures = store.cache.wait_fresh, 5

    async def wait_fresh() -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise Unavailable("the store is away")
        await real()

    monkeypatch.setattr(store.cache, "wait_fresh", wait_fresh, raising=False)
    informer = informers.of("", "v1", "configmaps")
    await informer.wait_synced()
    assert failures == 0
    assert "informer of configmaps" in "".join(supervisor.unhealthy())
    assert informer.lister.get("default", "a") is not None


# Trimming


class Trimmed:
    """A handler that keeps one value of each object; raises for a name as often as told."""

    def __init__(self, failing: dict[str, int] | None = None) -> None:
        self.values: dict[tuple[str, str], str] = {}
        self.told = 0
        self.failing = failing or {}
        self._more = asyncio.Event()

    def put(self, obj: dict[str, Any]) -> None:
        assert (obj["kind"], obj["apiVersion"]) == ("ConfigMap", "v1")
        metadata = obj["metadata"]
        if self.failing.get(metadata["name"]):
            self.failing[metadata["name"]] -= 1
            raise RuntimeError("not yet")
        self.told += 1
        self.values[metadata["namespace"], metadata["name"]] = (obj.get("data") or {}).get("k", "")
        self._more.set()

    def remove(self, namespace: str, name: str) -> None:
        self.values.pop((namespace, name), None)
        self._more.set()

    async def until(self, **values: str) -> None:
        wanted = {("default", name): value for name, value in values.items()}
        async with asyncio.timeout(120):
            while self.values != wanted:
                self._more.clear()
                await self._more.wait()


def decoded(store: Store) -> int:
    """How many objects are kept decoded."""
    return sum(bool(entry.forms) for entry in store.cache.entries())


async def test_a_trimming_handler_hears_of_everything_and_nothing_is_kept_for_it(
    store: Store, informers: InformerFactory
) -> None:
    await create(store, config_map("old"))
    informer, trimmed = informers.of("", "v1", "configmaps"), Trimmed()
    informer.add_trimming_handler(trimmed.put, trimmed.remove, name="test")
    await informer.wait_synced()
    assert trimmed.values == {("default", "old"): ""}
    await create(store, config_map("new"))
    await update(store, "default", "new", set_data("1"))
    await remove(store, "default", "old")
    await trimmed.until(new="1")
    assert decoded(store) == 0
    store.cache.reset(Unavailable("the store is away"))
    await remove(store, "default", "new")
    await create(store, config_map("newer"))
    await trimmed.until(newer="")


async def test_what_a_handler_makes_of_a_long_object_is_made_aside(store: Store, informers: InformerFactory) -> None:
    informer, trimmed, threads = informers.of("", "v1", "configmaps"), Trimmed(), dict[str, int]()

    def digest(obj: dict[str, Any]) -> dict[str, Any]:
        threads[obj["metadata"]["name"]] = threading.get_ident()
        return obj

    informer.add_trimming_handler(trimmed.put, trimmed.remove, digest=digest)
    await informer.wait_synced()
    long = "x" * LONG
    await create(store, {**config_map("long"), "data": {"k": long}})
    await create(store, {**config_map("short"), "data": {"k": "a"}})
    await trimmed.until(long=long, short="a")
    here = threading.get_ident()
    assert (threads["long"] == here, threads["short"] == here) == (False, True)
    assert decoded(store) == 0


async def test_a_digest_that_fails_is_made_again(store: Store, informer: Informer) -> None:
    trimmed, failures = Trimmed(), [1, 2]

    def digest(obj: dict[str, Any]) -> dict[str, Any]:
        if failures:
            raise RuntimeError(failures.pop())
        return obj

    informer.add_trimming_handler(trimmed.put, trimmed.remove, digest=digest)
    await informer.wait_synced()
    long = "x" * LONG
    await create(store, {**config_map("long"), "data": {"k": long}})
    await trimmed.until(long=long)


async def test_a_trimming_handler_that_raises_is_told_the_newest_state(store: Store, informer: Informer) -> None:
    trimmed = Trimmed({"bad": 2})
    informer.add_trimming_handler(trimmed.put, trimmed.remove)
    await informer.wait_synced()
    await create(store, config_map("bad"))
    await create(store, config_map("gone"))
    await update(store, "default", "bad", set_data("1"))
    await remove(store, "default", "gone")
    await trimmed.until(bad="1")


@pytest.mark.parametrize("late", [False, True])
async def test_many_objects_are_told_of_once_while_they_are_loaded(
    store: Store, informers: InformerFactory, late: bool
) -> None:
    count = 1100  # more than a page
    for number in range(count):
        await create(store, config_map(f"m{number}"))
    await update(store, "default", "m7", set_data("1"))
    store.cache.reset(Unavailable("loaded anew by the informer"))
    informer, trimmed, other = informers.of("", "v1", "configmaps"), Trimmed(), Trimmed()
    informer.add_trimming_handler(trimmed.put, trimmed.remove, fields=["data"])
    if late:
        while not trimmed.told:
            await asyncio.sleep(0)
        informer.add_trimming_handler(other.put, other.remove, fields=["data"])
    await informer.wait_synced()
    assert len(trimmed.values) == count
    assert trimmed.values["default", "m7"] == "1"
    if late:
        assert other.values == trimmed.values
    else:
        assert trimmed.told == count
    assert decoded(store) == 0
    await remove(store, "default", "m0")
    await update(store, "default", "m1", set_data("2"))
    await trimmed.until(**{f"m{number}": {1: "2", 7: "1"}.get(number, "") for number in range(1, count)})


@pytest.mark.parametrize("count", [3, 450])
async def test_whoever_needs_objects_later_gets_all_of_them(
    store: Store, informers: InformerFactory, count: int
) -> None:
    for number in range(count):
        await create(store, config_map(f"m{number}", labels={"app": "web"}))
    informer, trimmed, other = informers.of("", "v1", "configmaps"), Trimmed(), Trimmed()
    informer.add_trimming_handler(trimmed.put, trimmed.remove)
    await informer.wait_synced()
    informer.add_trimming_handler(other.put, other.remove)
    await informer.wait_synced()
    assert len(trimmed.values) == len(other.values) == count
    assert decoded(store) == 0
    told, heard = trimmed.told, Heard()
    informer.add_index("by-app", lambda obj: [obj["metadata"]["labels"]["app"]])
    heard.register(informer)
    await remove(store, "default", "m0")
    await create(store, config_map("m0", labels={"app": "web"}))
    await informer.wait_synced()
    assert not informers.not_synced()
    assert len(informer.lister) == informer.lister.count("by-app", "web") == count
    await update(store, "default", "m1", set_data("1"))
    await heard.until("update m1 1")
    assert sorted(heard.events)[-count - 2 :].count("update m1 1") == 1
    assert [event for event in heard.events if event.startswith("add")].count("add m2") == 1
    assert trimmed.told <= told + 2
    assert len(trimmed.values) == len(other.values) == count


async def test_who_comes_late_to_many_objects_hears_of_them_in_turns(
    store: Store, informers: InformerFactory, informer: Informer
) -> None:
    count = 450
    for number in range(count):
        await create(store, config_map(f"m{number}", labels={"app": "web"}))
    informer.add_handler()
    await informer.wait_synced()
    late, trimmed = Heard(), Trimmed()
    late.register(informer)
    informer.add_index("by-app", lambda obj: [obj["metadata"]["labels"]["app"]])
    informer.add_trimming_handler(trimmed.put, trimmed.remove)
    assert (late.events, trimmed.values) == ([], {})
    assert not informer.has_synced
    await remove(store, "default", "m0")
    await update(store, "default", f"m{count - 1}", set_data("1"))
    await informer.wait_synced()
    assert not informers.not_synced()
    added = [event.split()[1] for event in late.events if event.startswith("add")]
    assert len(added) == len(set(added)) >= count - 1
    assert len(informer.lister) == informer.lister.count("by-app", "web") == len(trimmed.values) == count - 1
    await update(store, "default", "m1", set_data("2"))
    await late.until("update m1 2")


async def test_an_index_is_whole_before_anybody_has_waited_for_it(store: Store, informer: Informer) -> None:
    count = 450
    for number in range(count):
        await create(store, config_map(f"m{number}", labels={"app": "web"}))
    informer.add_handler()
    await informer.wait_synced()
    informer.add_index("by-app", lambda obj: [obj["metadata"]["labels"]["app"]])
    assert not informer.has_synced
    assert await asyncio.to_thread(informer.lister.count, "by-app", "web") == count
    await informer.wait_synced()


async def test_a_handler_that_is_removed_is_not_waited_for(store: Store, informer: Informer) -> None:
    for number in range(450):
        await create(store, config_map(f"m{number}"))
    informer.add_handler()
    await informer.wait_synced()
    late = Heard()
    informer.remove_handler(informer.add_handler(late.on_add))
    assert informer.has_synced
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert late.events == []
