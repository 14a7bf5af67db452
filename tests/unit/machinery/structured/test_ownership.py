"""Updates and applies of several managers, one after another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.machinery.structured import Shape, compare, describe, extract_items, to_field_set, validate
from pilothouse.machinery.structured import field_sets as sets
from pilothouse.machinery.structured.ownership import (
    Conflicts,
    Managers,
    MissingVersion,
    Owned,
    Ownership,
    Unconvertible,
    Versioned,
)

Things = st.SearchStrategy[dict[str, Any]]
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


class World:
    """One object and its managers."""

    def __init__(self, shape: Shape, ignored: dict[str, Any] | None = None) -> None:
        self.shape = shape
        self.value: dict[str, Any] = {}
        self.managers: Managers = {}
        self.rules = Ownership(self.convert, ignored or {})

    def convert(self, value: Versioned, version: str, /) -> Versioned:
        """Version v2 has ``number`` where v1 has ``text``, both as text; v0 is gone."""
        if version == "v0":
            raise MissingVersion(version)
        if value.version == version:
            return value
        there, back = ("text", "kind") if version == "v2" else ("kind", "text")
        renamed = {back if key == there else key: item for key, item in (value.value or {}).items()}
        return Versioned(self.shape, renamed, version)

    def at(self, value: Any, version: str = "v1") -> Versioned:
        return Versioned(self.shape, value, version)

    def update(self, manager: str, value: dict[str, Any]) -> None:
        left, changed = self.rules.update(self.at(self.value), self.at(value), self.managers)
        if changed:
            before = left.get(manager)
            left[manager] = Owned(sets.union(changed, before.fields if before else {}), "v1", False)
        self.value, self.managers = value, left

    def apply(self, manager: str, config: dict[str, Any], *, force: bool = False, version: str = "v1") -> None:
        live = self.convert(self.at(self.value), version)
        merged, self.managers = self.rules.apply(live, self.at(config, version), self.managers, manager, force=force)
        self.value = self.convert(merged, "v1").value or {}

    def owned(self, manager: str) -> Any:
        return self.managers[manager].fields if manager in self.managers else {}


def test_a_field_changes_hands(thing: Shape) -> None:
    world = World(thing)
    world.update("a", {"text": "1", "labels": {"x": "1"}})
    assert world.owned("a") == {"f:labels": {".": {}, "f:x": {}}, "f:text": {}}
    world.update("b", {"text": "2", "labels": {"x": "1", "y": "1"}})
    assert world.owned("a") == {"f:labels": {".": {}, "f:x": {}}}
    assert world.owned("b") == {"f:labels": {"f:y": {}}, "f:text": {}}
    world.update("c", {})
    assert world.managers == {}


def test_applying_conflicts_and_forcing(thing: Shape) -> None:
    world = World(thing)
    world.apply("a", {"text": "1", "items": [{"name": "x", "value": "1"}]})
    world.apply("b", {"text": "1"})
    with pytest.raises(Conflicts) as caught:
        world.apply("b", {"text": "2", "items": [{"name": "x", "value": "2"}]})
    assert caught.value.conflicts == [("a", ("f:text",)), ("a", ("f:items", 'k:{"name":"x"}', "f:value"))]
    world.apply("b", {"text": "2", "items": [{"name": "x", "value": "2"}]}, force=True)
    assert world.value == {"text": "2", "items": [{"name": "x", "value": "2"}]}
    assert world.owned("a") == {"f:items": {'k:{"name":"x"}': {".": {}, "f:name": {}}}}


def test_what_is_no_longer_applied_goes(thing: Shape) -> None:
    world = World(thing)
    world.apply("a", {"text": "1", "labels": {"x": "1", "y": "1"}, "set": ["p", "q"], "items": [{"name": "i"}]})
    world.apply("b", {"labels": {"y": "1"}, "set": ["q"]})
    world.apply("a", {"labels": {"z": "1"}})
    assert world.value == {"labels": {"y": "1", "z": "1"}, "set": ["q"]}
    assert world.owned("a") == {"f:labels": {"f:z": {}}}


def test_an_item_goes_with_its_last_owner(thing: Shape) -> None:
    world = World(thing)
    world.apply("a", {"items": [{"name": "i", "value": "1"}]})
    world.update("b", {"items": [{"name": "i", "value": "1", "inner": {"a": "x"}}]})
    world.apply("c", {"items": [{"name": "i"}]})
    world.apply("a", {"items": []})
    assert world.value == {"items": [{"name": "i", "inner": {"a": "x"}}]}
    world.apply("c", {})
    assert world.value == {"items": None}
    assert world.managers == {}


def test_ignored_fields_are_nobodys(thing: Shape) -> None:
    world = World(thing, {"v1": sets.from_paths(("f:labels",))})
    world.update("a", {"text": "1", "labels": {"x": "1"}})
    assert world.owned("a") == {"f:text": {}}
    world.apply("b", {"number": 7, "labels": {"x": "1"}})
    assert world.owned("b") == {"f:number": {}}


def test_a_filter_instead_of_ignored_fields(thing: Shape) -> None:
    world = World(thing, {"v1": lambda fields: sets.matching(fields, {"f:items": {sets.ANY: {"f:value": {}}}})})
    world.update("a", {"text": "1", "items": [{"name": "i", "value": "1", "inner": {}}]})
    assert world.owned("a") == {"f:items": {".": {}, 'k:{"name":"i"}': {".": {}, "f:value": {}}}}


def test_managers_of_lost_versions_are_dropped(thing: Shape) -> None:
    world = World(thing)
    world.value = {"text": "1"}
    world.managers = {"old": Owned({"f:text": {}}, "v0", False)}
    world.update("a", {"text": "1", "number": 5})
    assert world.managers == {"a": Owned({"f:number": {}}, "v1", False)}


def test_managers_of_another_version(thing: Shape) -> None:
    world = World(thing)
    world.apply("two", {"kind": "x"}, version="v2")
    assert world.value == {"text": "x"}
    with pytest.raises(Conflicts) as caught:
        world.apply("one", {"text": "y"})
    assert caught.value.conflicts == [("two", ("f:kind",))]
    world.update("other", {"text": "z"})
    assert "two" not in world.managers
    world.apply("two", {"kind": "x"}, version="v2", force=True)
    world.apply("two", {"number": 5})
    assert world.value == {"number": 5}


def test_duplicates_are_owned_together(thing: Shape) -> None:
    world = World(thing)
    world.update("a", {"items": [{"name": "i", "value": "1"}, {"name": "i", "value": "2"}]})
    assert world.owned("a") == {"f:items": {".": {}, 'k:{"name":"i"}': {}}}
    world.apply("b", {"items": [{"name": "i", "value": "3"}]}, force=True)
    assert world.value == {"items": [{"name": "i", "value": "3"}]}


@relaxed
@given(st.data())
def test_applying_again_changes_nothing(thing: Shape, things: Things, data: st.DataObject) -> None:
    world = World(thing)
    world.update("u", data.draw(things))
    world.apply("b", data.draw(things), force=True)
    config = data.draw(things)
    world.apply("a", config, force=True)
    value, managers = world.value, world.managers
    world.apply("a", config)
    assert (world.value, world.managers) == (value, managers)


@relaxed
@given(st.data())
def test_applying_ones_own_view_changes_nothing(thing: Shape, things: Things, data: st.DataObject) -> None:
    world = World(thing)
    world.update("u", data.draw(things))
    world.apply("a", data.draw(things), force=True)
    value, owned = world.value, world.owned("a")
    view = extract_items(thing, value, owned, with_keys=True) or {}
    world.apply("a", view, force=True)
    assert compare(thing, value, world.value).is_same


@relaxed
@given(st.data())
def test_ownership_is_never_lost(thing: Shape, things: Things, data: st.DataObject) -> None:
    """A manager loses only what somebody else changed or what is gone, and appliers own what they apply."""
    world = World(thing)
    for manager in data.draw(st.lists(st.sampled_from("abc"), max_size=5)):
        value, before, operation = data.draw(things), dict(world.managers), data.draw(st.sampled_from(["apply", "put"]))
        old = world.value
        if operation == "put":
            world.update("u" + manager, value)
        else:
            world.apply(manager, value, force=True)
            assert not sets.difference(to_field_set(thing, value), world.owned(manager))
        validate(thing, world.value)
        changes = compare(thing, old, world.value)
        for name, owned in before.items():
            if name not in (manager, "u" + manager):
                lost = sets.difference(owned.fields, world.owned(name))
                assert not sets.difference(lost, sets.union(changes.changed, changes.removed))
        if operation == "put" and not changes.is_same:
            assert not sets.difference(changes.changed, world.owned("u" + manager))


@relaxed
@given(st.data())
def test_arguments_are_left_alone(thing: Shape, things: Things, data: st.DataObject) -> None:
    world = World(thing)
    first, second = data.draw(things), data.draw(things)
    shown = repr((first, second))
    world.update("u", first)
    managers = repr(world.managers)
    kept = world.managers
    world.apply("a", second, force=True)
    world.apply("a", {}, force=True)
    assert repr((first, second)) == shown
    assert repr(kept) == managers
    assert describe(thing, first) is not None


def test_what_does_not_fit_shows_in_pruning_even_where_there_is_nothing_to_prune(thing: Shape) -> None:
    world = World(thing)
    world.apply("a", {"text": "1"}, version="v2")
    world.apply("b", {"labels": {"x": "1"}}, version="v1", force=True)
    left = 1  # for the look at the schemas of all managers

    def convert(value: Versioned, version: str, /) -> Versioned:
        nonlocal left
        if value.version != version:
            left -= 1
            if left < 0:
                raise Unconvertible("does not fit")
        return world.convert(value, version)

    rules = Ownership(convert, {})
    with pytest.raises(Unconvertible, match="failed to prune fields: failed add back owned items: "):
        live = world.convert(world.at(world.value), "v2")
        rules.apply(live, world.at({"text": "1"}, "v2"), world.managers, "a", force=True)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (0, "does not fit"),
        (1, "failed to prune fields: failed to convert merged object to last applied version: does not fit"),
        (
            3,
            "failed to prune fields: failed add back owned items: failed to convert pruned object at version v2: does "
            "not fit",
        ),
    ],
)
def test_where_converting_fails(thing: Shape, calls: int, message: str) -> None:
    world = World(thing)
    world.apply("a", {"text": "1", "labels": {"x": "1"}}, version="v1")
    left = calls

    def convert(value: Versioned, version: str, /) -> Versioned:
        nonlocal left
        if value.version != version:
            left -= 1
            if left < 0:
                raise Unconvertible("does not fit")
        return world.convert(value, version)

    rules = Ownership(convert, {})
    live = world.convert(world.at(world.value), "v2")
    with pytest.raises(Unconvertible) as caught:
        rules.apply(live, world.at({"labels": {"x": "1"}}, "v2"), world.managers, "a", force=True)
    assert str(caught.value) == message
