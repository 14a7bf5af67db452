from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.runtime.indexer import BY_LABEL, Indexer
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
    indexed.add_index(BY_LABEL)
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
