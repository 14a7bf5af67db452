from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.runtime.indexer import BY_LABEL, SELECTOR, Indexer, read_selector
from pilothouse.machinery.labels import from_labels, parse

_NAMES = st.sampled_from(["a", "b", "c", "d"])
_LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]))
_CHANGES = st.lists(st.tuples(st.sampled_from(["one", "two"]), _NAMES, st.none() | _LABELS), max_size=30)


def made(namespace: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}}


@given(_CHANGES, _LABELS)
def test_an_index_of_labels_changes_no_answer(
    changes: list[tuple[str, str, dict[str, str] | None]], wanted: dict[str, str]
) -> None:
    plain, indexed = Indexer(), Indexer()
    indexed.add_index(BY_LABEL, None, lambda: None)
    indexed.finished(BY_LABEL)
    for namespace, name, labels in changes:
        for each in (plain, indexed):
            if labels is None:
                each.remove((namespace, name))
            else:
                each.put(made(namespace, name, labels))
    for selector in (from_labels(wanted), parse("app in (x,y),!tier"), parse("app in (x),tier!=y")):
        for namespace in ("one", "two", None):
            found = [
                sorted(obj["metadata"]["name"] for obj in each.list(namespace, selector)) for each in (plain, indexed)
            ]
            assert found[0] == found[1]
    assert not indexed.index_values(BY_LABEL) or len(indexed)


def test_an_index_that_is_not_finished_is_finished_by_whoever_needs_it() -> None:
    indexer = Indexer()
    for name in ("a", "b"):
        indexer.put(made("one", name, {"app": "x"}))
    finished = []

    def finish() -> None:
        finished.append("by-app")
        for obj in indexer.list():
            indexer.enter("by-app", obj)

    assert indexer.add_index("by-app", lambda obj: [obj["metadata"]["labels"]["app"]], finish)
    assert not indexer.add_index("by-app", lambda obj: [], finish)
    indexer.put(made("one", "c", {"app": "y"}))
    assert indexer.index_values("by-app") == {"x", "y"}
    assert [obj["metadata"]["name"] for obj in indexer.by_index("by-app", "x")] == ["a", "b"]
    indexer.finished("by-app")
    finished.clear()
    assert indexer.count("by-app", "x") == 2
    assert finished == []


def test_labels_are_selected_by_while_their_index_is_not_finished() -> None:
    indexer = Indexer()
    indexer.put(made("one", "a", {"app": "x"}))
    indexer.add_index(BY_LABEL, None, lambda: None)
    assert len(indexer.list("one", from_labels({"app": "x"}))) == 1


def budget(name: str, wanted: dict[str, str]) -> dict[str, Any]:
    return {**made("one", name, {}), "spec": {"selector": {"matchLabels": wanted}}}


def test_readings_are_made_once_for_each_state() -> None:
    read: list[str] = []

    def reader(obj: dict[str, Any]) -> int:
        read.append(obj["metadata"]["name"])
        return len(read)

    indexer = Indexer()
    first = made("one", "a", {})
    indexer.put(first)
    assert indexer.add_reading("number", reader)
    assert not indexer.add_reading("number", lambda obj: -1)
    indexer.read("number", first)
    assert [indexer.reading("number", first) for _ in range(3)] == [1, 1, 1]
    second = made("one", "a", {"app": "x"})
    indexer.prepare(second)
    indexer.put(second)
    assert indexer.reading("number", second) == 2
    assert indexer.reading("number", first) == 3, "of a state that is no longer the newest it is made anew"
    indexer.remove(("one", "a"))
    assert indexer.reading("number", second) == 4


def test_what_was_prepared_of_another_object_is_not_taken() -> None:
    indexer = Indexer()
    indexer.add_reading("name", lambda obj: obj["metadata"]["name"])
    indexer.prepare(made("one", "a", {}))
    other = made("one", "b", {})
    indexer.put(other)
    assert indexer.reading("name", other) == "b"


def test_selectors_that_cannot_be_understood_select_nothing() -> None:
    indexer = Indexer()
    indexer.add_reading(SELECTOR, read_selector)
    good, bad = budget("good", {"app": "x"}), budget("bad", {"not a key": "x"})
    indexer.put(good)
    indexer.put(bad)
    assert indexer.selector_of(good).matches({"app": "x"})
    assert not indexer.selector_of(bad).matches({"not a key": "x"})
