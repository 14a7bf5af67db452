"""What is remembered of bodies that come again, and what is not."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints.known_bodies import KnownBodies, KnownBody
from pilothouse.machinery.schema.emptied import Emptied

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


def seen_twice(data: bytes, obj: Any) -> tuple[KnownBodies, KnownBody | None]:
    known = KnownBodies()
    known.note(data, obj)
    assert known.find(data) is None
    known.note(data, obj)
    return known, known.find(data)


def typed(value: Any) -> Any:
    """The value with its types, which equality does not tell apart."""
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(st.dictionaries(st.text("abc", max_size=3), VALUES, max_size=4))
def test_what_comes_back_is_what_was_decoded(obj: dict[str, Any]) -> None:
    _, found = seen_twice(orjson.dumps(obj), obj)
    assert found is not None
    again, once_more = found.decode(), found.decode()
    assert typed(again) == typed(obj) == typed(once_more)
    assert again is not once_more


def test_what_comes_once_is_not_kept() -> None:
    known = KnownBodies()
    for number in range(2000):
        known.note(b"%d" % number, {"n": number})
    assert all(known.find(b"%d" % number) is None for number in range(2000))


def test_the_oldest_make_room() -> None:
    known = KnownBodies()
    for number in [*range(100), *range(100)]:
        known.note(b"%d" % number, {"n": number})
    kept = [number for number in range(100) if known.find(b"%d" % number) is not None]
    assert kept == list(range(68, 100))


def test_objects_that_know_more_than_their_bytes_are_not_kept() -> None:
    assert seen_twice(b"1", {"metadata": Emptied({}, {"labels": {}})})[1] is None
    assert seen_twice(b"2", {"n": 2**70})[1] is None


def test_large_bodies_are_not_kept() -> None:
    assert seen_twice(b"x" * 8193, {})[1] is None
