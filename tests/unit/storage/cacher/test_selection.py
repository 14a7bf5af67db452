"""Selecting many at once finds what the selectors' own tests find."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import fields, labels
from pilothouse.storage.cacher import NOTHING, Entry, entries, select, share_labels

VALUES = st.sampled_from(["", "1", "7", "a", "b"])
LABELS = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES)
REQUIREMENTS = st.one_of(
    st.builds(labels.Requirement, st.sampled_from("xyz"), st.sampled_from(["exists", "!"])),
    st.builds(
        lambda key, operator, value: labels.Requirement(key, operator, (value,)),
        st.sampled_from("xyz"),
        st.sampled_from(["=", "==", "!=", "gt", "lt", "in", "notin"]),
        VALUES,
    ),
    st.builds(
        lambda key, operator, values: labels.Requirement(key, operator, tuple(values)),
        st.sampled_from("xyz"),
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=2),
    ),
)


@given(st.lists(LABELS), st.lists(REQUIREMENTS, max_size=3))
def test_labels(all_labels, requirements):
    selector = labels.Selector(requirements)
    made = [Entry(f"/{number}", b"", 1, labels=each) for number, each in enumerate(all_labels)]
    assert select(made, selector, None) == [entry for entry in made if selector.matches(entry.labels)]


def test_no_selector_selects_all_and_nothing_selects_nothing():
    made = [Entry("/a", b"", 1), Entry("/b", b"", 1)]
    assert select(made, None, None) == select(made, labels.EVERYTHING, None) == made
    assert select(made, labels.NOTHING, None) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metadata.name=a", ["n/a"]),
        ("metadata.name!=a", ["n/b", "m/c"]),
        ("metadata.namespace=n", ["n/a", "n/b"]),
        ("metadata.namespace!=n,metadata.name==c", ["m/c"]),
        ("spec.nodeName=w", ["n/b"]),
        ("spec.nodeName=", ["n/a", "m/c"]),
        ("spec.nodeName!=w,metadata.namespace=n", ["n/a"]),
    ],
)
def test_fields(text, expected):
    made = [
        Entry("n/a", b"", 1, "n", "a"),
        Entry("n/b", b"", 1, "n", "b", fields={"spec.nodeName": "w"}),
        Entry("m/c", b"", 1, "m", "c", fields={"spec.nodeName": ""}),
    ]
    assert [entry.key for entry in select(made, None, fields.parse(text))] == expected


def test_both_selectors_must_match():
    made = [Entry(f"n/{name}", b"", 1, "n", name, labels={"x": value}) for name, value in ("a1", "b1", "a2")]
    found = select(made, labels.parse("x=1"), fields.parse("metadata.name=a"))
    assert found == made[:1]


def test_equal_labels_are_one_mapping_that_the_givers_cannot_change():
    mine = {"a": "b"}
    shared = share_labels(mine)
    assert share_labels({"a": "b"}) is shared
    mine["a"] = "c"
    assert shared == {"a": "b"} and share_labels({"a": "c"}) == {"a": "c"}
    assert share_labels({}) is share_labels(None) is NOTHING


def test_what_is_shared_is_bounded(monkeypatch):
    monkeypatch.setattr(entries, "_SHARED_LABELS", 10)
    for number in range(35):
        assert share_labels({"number": str(number)}) == {"number": str(number)}
        assert len(entries._shared) <= 10 or number == 0
