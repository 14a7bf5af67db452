"""However requirements are put together, labels match exactly when they meet each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.label_matching import (
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_EQUALS,
    NOT_IN,
    compile_all,
    compile_one,
)
from pilothouse.machinery.labels import Requirement, Selector

KEYS = st.sampled_from("abcd")
VALUES = st.sampled_from(["", "1", "2", "7", "x", "y", "-3"])
LABELS = st.dictionaries(st.sampled_from("abcdefgh"), VALUES)


def requirements() -> st.SearchStrategy[Requirement]:
    single = st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)),
        KEYS,
        st.sampled_from([EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN]),
        VALUES,
    )
    several = st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(values)),
        KEYS,
        st.sampled_from([IN, NOT_IN]),
        st.lists(VALUES, min_size=1),
    )
    bare = st.builds(Requirement, KEYS, st.sampled_from([EXISTS, DOES_NOT_EXIST]))
    return st.one_of(single, several, bare)


@given(st.lists(requirements(), max_size=12), LABELS)
def test_all_is_each(wanted: list[Requirement], labels: dict[str, str]) -> None:
    assert compile_all(wanted)(labels) is all(compile_one(each)(labels) for each in wanted)


def test_an_object_with_more_labels_than_there_are_requirements() -> None:
    selector = Selector(Requirement("a", NOT_EQUALS, (str(n),)) for n in range(10))
    many = {f"k{n}": "v" for n in range(100)}
    assert selector.matches(many)
    assert not selector.matches({**many, "a": "3"})
