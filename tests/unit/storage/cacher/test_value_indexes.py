"""An index finds what looking at everything finds; it comes and goes with its use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import fields, labels
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.traits import Attribute, Trait, trait_of
from pilothouse.storage.cacher.value_indexes import MOST_FOUND, ValueIndexes

NODE, APP = Attribute("spec.nodeName"), Attribute("app", is_label=True)


class Resource:
    """Entries and their indexes."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.indexes = ValueIndexes(lambda entry: self.entries.get(entry.key) is entry, fewest=1)

    def put(self, key: str, value: str | None) -> None:
        fields, labels = ({}, {}) if value is None else ({NODE.name: value}, {APP.name: value})
        entry = Entry(key, b"{}", 1, "", key, labels, fields)
        self.indexes.change(self.entries.get(key), entry)
        self.entries[key] = entry

    def remove(self, key: str) -> None:
        self.indexes.change(self.entries.pop(key, None), None)

    def ask(self, attribute: Attribute, value: str = "x") -> set[Entry] | None:
        return self.indexes.find(Trait(attribute, value), len(self.entries), len(self.entries))

    def use(self, attribute: Attribute, times: int = 8) -> None:
        for _ in range(times):
            self.ask(attribute)

    async def keep_up(self) -> None:
        await self.indexes.keep_up(lambda: list(self.entries.values()), len(self.entries))

    def scan(self, attribute: Attribute, value: str) -> set[Entry]:
        return {entry for entry in self.entries.values() if attribute.of(entry) == value}


def resource_of(*values: str) -> Resource:
    resource = Resource()
    for number, value in enumerate(values):
        resource.put(f"/{number}", value)
    return resource


def changed(resource: Resource, changes: Iterable[tuple[int, str | None, bool]]) -> None:
    for number, value, goes in changes:
        if goes:
            resource.remove(f"/{number}")
        else:
            resource.put(f"/{number}", value)


changes = st.lists(st.tuples(st.integers(0, 5), st.none() | st.sampled_from("xyz"), st.booleans()), max_size=8)


@given(changes, changes, changes)
async def test_an_index_finds_what_looking_finds(before: list, during: list, after: list) -> None:  # type: ignore[type-arg]
    resource = resource_of(*"xyzx")
    changed(resource, before)
    resource.put("/9", "x")
    for attribute in (NODE, APP):
        resource.use(attribute, 30)
        building = asyncio.ensure_future(resource.keep_up())
        await asyncio.sleep(0)
        changed(resource, during)
        await building
        changed(resource, after)
        assert attribute in resource.indexes.attributes
        for value in ("x", "y", "z", "none"):
            assert resource.ask(attribute, value) == resource.scan(attribute, value)
    if resource.entries:
        assert resource.ask(NODE, "") == resource.scan(NODE, "")


async def test_it_is_built_when_it_pays() -> None:
    resource = resource_of(*"xyzx")
    resource.use(NODE, 7)
    await resource.keep_up()
    assert resource.indexes.attributes == [] and resource.ask(NODE) is None
    await resource.keep_up()
    assert resource.indexes.attributes == [NODE]
    assert resource.ask(NODE) == resource.scan(NODE, "x")


async def test_it_goes_when_there_are_changes_and_no_use() -> None:
    resource = resource_of(*"xyzx")
    resource.use(NODE)
    await resource.keep_up()
    for _ in range(4 * 16):
        resource.put("/0", "y")
    await resource.keep_up()
    assert resource.indexes.attributes == []


async def test_few_are_kept_and_few_are_known() -> None:
    resource = resource_of(*"xyzx")
    names = [Attribute(f"field {number}") for number in range(100)]
    for name in names:
        resource.use(name)
        await resource.keep_up()
    assert resource.indexes.attributes == names[:4]


async def test_many_are_not_worth_an_index() -> None:
    resource = resource_of(*("x" for _ in range(MOST_FOUND + 1)), "y")
    resource.use(NODE)
    await resource.keep_up()
    assert resource.ask(NODE) is None
    assert resource.ask(NODE, "y") == resource.scan(NODE, "y")


async def test_a_few_looks_are_sooner_done_than_saved() -> None:
    resource = Resource()
    resource.indexes = ValueIndexes(lambda entry: True)
    resource.use(NODE, 100)
    assert resource.indexes._uses == {}


@pytest.mark.parametrize("how", ["cleared", "cancelled"])
async def test_what_was_begun_and_not_finished_is_not_used(how: str) -> None:
    resource = resource_of(*("x" for _ in range(3000)), "y")
    resource.use(NODE)
    building = asyncio.ensure_future(resource.keep_up())
    await asyncio.sleep(0)
    if how == "cleared":
        resource.indexes.clear()
        await building
    else:
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
    assert resource.indexes.attributes == [] and resource.indexes._kept == {}
    assert resource.ask(NODE, "y") is None


@pytest.mark.parametrize(
    ("wanted", "fielded", "trait"),
    [
        ("app=x", "", Trait(APP, "x")),
        ("a!=b,app in (x)", "", Trait(APP, "x")),
        ("app in (x,y),!b,c", "", None),
        ("app=x", "spec.nodeName=n", Trait(NODE, "n")),
        ("app=x", "spec.nodeName!=n", Trait(APP, "x")),
        ("", "status.phase!=Running,spec.nodeName=", Trait(NODE, "")),
        ("", "", None),
    ],
)
def test_what_matching_entries_have_in_common(wanted: str, fielded: str, trait: Trait | None) -> None:
    assert trait_of(labels.parse(wanted) if wanted else None, fields.parse(fielded) if fielded else None) == trait
