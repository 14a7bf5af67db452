from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.storage.cacher import ordering
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.ordering import OrderedEntries

keys = st.text("abc/", max_size=4)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(ordering, "_BLOCK", 3)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), keys), max_size=60), keys, keys, st.integers(0, 5))
def test_behaves_like_a_sorted_dict(operations, low, high, limit):
    ordered, model = OrderedEntries(), {}
    for number, (put, key) in enumerate(operations):
        if put:
            entry = Entry(key, b"", number)
            assert ordered.put(entry) is model.get(key)
            model[key] = entry
        else:
            assert ordered.remove(key) is model.pop(key, None)
        assert ordered.get(key) is model.get(key)
        assert len(ordered) == len(model)
    inside = [model[key] for key in sorted(model) if low <= key < high]
    assert ordered.between(low, high) == inside
    assert ordered.between(low, high, limit) == (inside[:limit] if limit else inside)
    assert ordered.count(low, high) == len(inside)


@given(st.sets(keys), keys)
def test_can_be_filled_at_once(names, low):
    ordered = OrderedEntries()
    ordered.fill(Entry(key, b"", 1) for key in sorted(names))
    assert [entry.key for entry in ordered.between(low, "~")] == sorted(names)[bisect_left(sorted(names), low) :]
    for key in names:
        assert ordered.get(key).key == key


def test_a_listing_does_not_change_afterwards():
    ordered = OrderedEntries()
    first = Entry("a", b"", 1)
    ordered.put(first)
    listing = ordered.between("", "~")
    ordered.put(Entry("a", b"", 2))
    ordered.put(Entry("b", b"", 3))
    assert listing == [first]
