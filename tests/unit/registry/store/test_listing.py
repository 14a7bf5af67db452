"""Lists: pages, selectors, versions; and that all pages together show one moment."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.machinery import fields, labels
from pilothouse.machinery.errors import StatusError
from pilothouse.registry.rest.deletion import DeleteOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.listing import Listing, ListOptions, list_entries
from pilothouse.registry.store.removal import delete
from pilothouse.registry.store.store import Store
from pilothouse.registry.store.versions import parse_version

NOW = "2026-01-02T03:04:05Z"


@pytest.fixture
def store(storage: StorageFactory) -> Store:
    return storage.store("", "v1", "configmaps")


async def add(store: Store, name: str, namespace: str = "default", **metadata: Any) -> int:
    ctx = Context(namespace=namespace, now=NOW)
    return (await store.create(ctx, {"metadata": {"name": name, **metadata}})).revision


async def remove(store: Store, name: str) -> None:
    await delete(store, Context(namespace="default", now=NOW), name, DeleteOptions())


def names(page: Listing) -> list[str]:
    return [entry.name for entry in page.entries]


async def pages(store: Store, limit: int, **options: Any) -> list[Listing]:
    found = [await list_entries(store, "default", ListOptions(limit=limit, **options))]
    while found[-1].token:
        options.pop("version", None)
        found.append(await list_entries(store, "default", ListOptions(limit=limit, token=found[-1].token, **options)))
    return found


async def test_namespaces(store: Store) -> None:
    await add(store, "a", "one")
    await add(store, "a", "one-two")
    await add(store, "b", "one")
    assert names(await list_entries(store, "one", ListOptions())) == ["a", "b"]
    assert len((await list_entries(store, "", ListOptions())).entries) == 3


async def test_pages_tell_what_remains(store: Store) -> None:
    for number in range(7):
        await add(store, f"m{number}")
    found = await pages(store, 3)
    assert [names(page) for page in found] == [["m0", "m1", "m2"], ["m3", "m4", "m5"], ["m6"]]
    assert [page.remaining for page in found] == [4, 1, None]
    assert len({page.revision for page in found}) == 1


async def test_selected_pages_do_not_tell_what_remains(store: Store) -> None:
    for number in range(8):
        await add(store, f"m{number}", labels={"even": str(number % 2 == 0).lower()})
    found = await pages(store, 3, labels=labels.parse("even=true"))
    assert [names(page) for page in found] == [["m0", "m2", "m4"], ["m6"]]
    assert {page.remaining for page in found} == {None}


@pytest.mark.parametrize("limit", [0, -1])
async def test_no_limit(store: Store, limit: int) -> None:
    for name in "abc":
        await add(store, name)
    page = await list_entries(store, "default", ListOptions(limit=limit))
    assert (names(page), page.token) == (["a", "b", "c"], "")


async def test_field_selectors(store: Store) -> None:
    for name in "abc":
        await add(store, name)
    assert names(await list_entries(store, "", ListOptions(fields=fields.parse("metadata.name=b")))) == ["b"]
    assert names(await list_entries(store, "", ListOptions(fields=fields.parse("metadata.name!=b")))) == ["a", "c"]
    both = fields.parse("metadata.name=b,metadata.namespace!=default")
    assert names(await list_entries(store, "", ListOptions(fields=both))) == []


@pytest.mark.parametrize(
    ("namespace", "selector", "found"),
    [
        ("one", "metadata.name=b", ["one/b"]),
        ("one", "metadata.name=c", []),
        ("one", "metadata.name=", []),
        ("one", "metadata.name=b,metadata.name=a", []),
        ("one", "metadata.name=b,metadata.name!=b", []),
        ("one", "metadata.name=b,metadata.namespace=two", []),
        ("", "metadata.name=b", ["one/b", "two/b"]),
        ("", "metadata.name=b,metadata.namespace=two", ["two/b"]),
        ("", "metadata.name=two/b", []),
        ("", "metadata.namespace=two", ["two/b", "two/c"]),
        ("", "metadata.namespace=two,metadata.name!=b", ["two/c"]),
        ("", "metadata.namespace=two/b", []),
    ],
)
@pytest.mark.parametrize("limit", [0, 1, 5])
async def test_lists_of_one_name_or_namespace(
    store: Store, namespace: str, selector: str, found: list[str], limit: int
) -> None:
    for key in ("one/a", "one/b", "two/b", "two/c"):
        await add(store, key.partition("/")[2], key.partition("/")[0])
    chosen: list[str] = []
    token = ""
    while True:
        options = ListOptions(fields=fields.parse(selector), limit=limit, token=token)
        page = await list_entries(store, namespace, options)
        chosen += [f"{entry.namespace}/{entry.name}" for entry in page.entries]
        token = page.token
        if not token:
            break
    assert chosen == found


async def test_a_list_of_one_name_is_not_continued(store: Store) -> None:
    for name in ("a", "b", "c"):
        await add(store, name)
    page = await list_entries(store, "default", ListOptions(fields=fields.parse("metadata.name=a"), limit=1))
    assert (names(page), page.token, page.remaining) == (["a"], "", None)


async def test_a_limit_does_not_make_a_version_exact_for_one_name(store: Store) -> None:
    before = await add(store, "a")
    await add(store, "b")

    async def found(selector: str) -> list[str]:
        options = ListOptions(fields=fields.parse(selector), version=str(before), limit=1)
        return names(await list_entries(store, "default", options))

    assert [await found("metadata.name=b"), await found("metadata.name!=a")] == [["b"], []]


async def test_the_past_of_one_name(store: Store) -> None:
    before = await add(store, "a")
    created = await add(store, "b")
    await remove(store, "b")

    async def at(revision: int) -> list[str]:
        options = ListOptions(fields=fields.parse("metadata.name=b"), version=str(revision), match="Exact")
        page = await list_entries(store, "default", options)
        assert page.revision == revision
        return names(page)

    assert [await at(before), await at(created), await at(created + 1)] == [[], ["b"], []]


async def test_a_version_that_does_not_come(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pilothouse.registry.store.reading._WAIT_SECONDS", 0.01)
    far = await add(store, "a") + 1000
    for options in (
        ListOptions(version=str(far)),
        ListOptions(version=str(far), limit=1),
        ListOptions(version=str(far), match="Exact"),
        ListOptions(version=str(far), match="Exact", fields=fields.parse("metadata.name=a")),
    ):
        with pytest.raises(StatusError) as refused:
            await list_entries(store, "default", options)
        assert (refused.value.code, (refused.value.details or {}).get("retryAfterSeconds")) == (504, 1)


async def test_a_version_that_comes_while_it_is_waited_for(store: Store) -> None:
    coming = await add(store, "a") + 1
    listing = asyncio.ensure_future(list_entries(store, "", ListOptions(version=str(coming), match="Exact")))
    await asyncio.sleep(0)
    await add(store, "b")
    assert names(await listing) == ["a", "b"]


async def test_lists_of_the_past(store: Store) -> None:
    first = await add(store, "a")
    second = await add(store, "b")
    await remove(store, "a")
    exactly = [ListOptions(version=str(v), match="Exact") for v in (first, second, second + 1)]
    assert [names(await list_entries(store, "", each)) for each in exactly] == [["a"], ["a", "b"], ["b"]]
    assert (await list_entries(store, "", exactly[0])).revision == first
    at_least = ListOptions(version=str(first), match="NotOlderThan")
    assert names(await list_entries(store, "", at_least)) == ["b"]
    # A limit without a match asks for the version itself.
    assert names(await list_entries(store, "", ListOptions(version=str(first), limit=5))) == ["a"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (ListOptions(version="x"), 400, "invalid resource version"),
        (ListOptions(token="!"), 400, "invalid continue token: continue key is not valid"),
        (ListOptions(token="bm90anNvbg"), 400, "invalid continue token"),
    ],
)
async def test_refusals(store: Store, options: ListOptions, code: int, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        await list_entries(store, "", options)
    assert caught.value.code == code
    assert message in caught.value.message


async def test_a_token_and_a_version_exclude_each_other(store: Store) -> None:
    for name in "abc":
        await add(store, name)
    token = (await list_entries(store, "default", ListOptions(limit=1))).token
    with pytest.raises(StatusError, match="specifying resource version is not allowed when using continue"):
        await list_entries(store, "default", ListOptions(limit=1, token=token, version="5"))


async def test_an_expired_token_offers_another(store: Store) -> None:
    for name in "abcd":
        await add(store, name)
    token = (await list_entries(store, "default", ListOptions(limit=2))).token
    await remove(store, "c")
    await add(store, "e")
    backend = store.cache._backend
    await backend.compact(await backend.current_revision())
    with pytest.raises(StatusError) as caught:
        await list_entries(store, "default", ListOptions(limit=2, token=token))
    error = caught.value
    assert (error.code, error.reason) == (410, "Expired")
    assert error.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    page = await list_entries(store, "default", ListOptions(limit=2, token=error.metadata["continue"]))
    assert names(page) == ["d", "e"]


async def test_a_token_expires_with_its_revision_though_nothing_has_changed(
    storage: StorageFactory, store: Store
) -> None:
    for name in "abcd":
        await add(store, name)
    token = (await list_entries(store, "default", ListOptions(limit=2))).token
    await add(store, "z", namespace="elsewhere")
    cacher = store.cache._cacher
    await cacher.backend.compact(await cacher.backend.current_revision())
    await cacher.note_compaction()
    with pytest.raises(StatusError) as caught:
        await list_entries(store, "default", ListOptions(limit=2, token=token))
    assert caught.value.code == 410
    page = await list_entries(store, "default", ListOptions(limit=2, token=caught.value.metadata["continue"]))
    assert names(page) == ["c", "d"]


@pytest.mark.parametrize("seed", range(5))
async def test_pages_show_each_object_once_while_writes_go_on(store: Store, seed: int) -> None:
    choice = random.Random(seed)
    for number in range(60):
        await add(store, f"m{number:03}")
    snapshot = sorted(names(await list_entries(store, "default", ListOptions())))
    stop = asyncio.Event()

    async def disturb() -> None:
        number = 100
        while not stop.is_set():
            await add(store, f"m{choice.randrange(1000):03}x{number}")
            alive = names(await list_entries(store, "default", ListOptions()))
            await remove(store, choice.choice(alive))
            number += 1

    page = await list_entries(store, "default", ListOptions(limit=7))
    disturbing = asyncio.create_task(disturb())
    shown = names(page)
    revision = page.revision
    while page.token:
        await asyncio.sleep(0)
        page = await list_entries(store, "default", ListOptions(limit=7, token=page.token))
        shown += names(page)
        assert page.revision == revision
    stop.set()
    await disturbing
    assert shown == snapshot


@pytest.mark.parametrize("seed", range(3))
async def test_lists_at_any_revision_equal_a_model(store: Store, seed: int) -> None:
    choice = random.Random(seed)
    alive: dict[str, int] = {}
    history: dict[int, dict[str, int]] = {}
    for _ in range(80):
        name = f"m{choice.randrange(8)}"
        ctx = Context(namespace="default", now=NOW)
        if name not in alive:
            alive[name] = await add(store, name)
            history[alive[name]] = dict(alive)
        elif choice.random() < 0.5:
            number = str(choice.random())

            async def change(old: Any, number: str = number) -> Any:
                return {**old, "data": {"n": number}}

            alive[name] = (await store.update(ctx, name, change))[0].revision
            history[alive[name]] = dict(alive)
        else:
            del alive[name]
            entry, _ = await delete(store, ctx, name, DeleteOptions())
            history[entry.revision] = dict(alive)
    for revision, model in history.items():
        page = await list_entries(store, "default", ListOptions(version=str(revision), match="Exact"))
        assert {entry.name: entry.revision for entry in page.entries} == model, revision
        limit = choice.randrange(1, 5)
        found = await pages(store, limit, version=str(revision))
        assert [n for each in found for n in names(each)] == sorted(model)


@pytest.mark.parametrize(
    ("text", "number"), [("", 0), ("0", 0), ("7", 7), (str((1 << 64) - 1), (1 << 64) - 1), ("007", 7)]
)
def test_versions(text: str, number: int) -> None:
    assert parse_version(text) == number


@pytest.mark.parametrize(
    ("text", "why"),
    [("x", "invalid syntax"), ("-1", "invalid syntax"), ("1.0", "invalid syntax"), ("٣", "invalid syntax"),
     (str(1 << 64), "value out of range"), ("9" * 10_000, "value out of range")],
)  # fmt: skip
def test_no_versions(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_version(text)
