"""What nobody else has is taken apart; what somebody else has stays whole."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from pilothouse.machinery.disposal import dispose


class Leaf:
    """Something of which it can be told whether it is still there."""


def test_frees_everything_below() -> None:
    leaf = Leaf()
    gone = weakref.ref(leaf)
    inner: Any = {"a": [({"b": leaf},)] * 3}
    del leaf
    values: list[Any] = [[{"c": inner}] * 1_000]
    del inner
    dispose(values)
    assert values == []
    assert gone() is None


def test_leaves_alone_what_others_have() -> None:
    shared = {"a": [1, 2, {"b": []}], "c": {"d": "e"}}
    before = repr(shared)
    root = [shared, {"inner": [shared]}]
    dispose([root])
    assert root == [shared, {"inner": [shared]}]
    values: list[Any] = [[shared, {"inner": [shared]}], [shared]]
    dispose(values)
    assert repr(shared) == before


def test_takes_apart_before_it_frees() -> None:
    """A long list that only the values have is emptied from within: its items go one part after the other."""
    order: list[int] = []

    def note(number: int) -> Leaf:
        leaf = Leaf()
        weakref.finalize(leaf, order.append, number)
        return leaf

    dispose([[[note(number)] for number in range(1_000)]])
    assert sorted(order) == list(range(1_000))
    assert max(order[:250]) - min(order[:250]) < 250
    assert order[0] >= 750


def _branch(leaves: list[Any]) -> Any:
    """Something small with leaves in it."""
    return {"a": ({"b": leaves},)}


@pytest.mark.parametrize(
    "wrap",
    [
        lambda leaves: [[leaves]],
        lambda leaves: {"spec": {"rules": [_branch([leaf]) for leaf in leaves]}},
        lambda leaves: ({str(number): _branch([leaf]) for number, leaf in enumerate(leaves)},),
        lambda leaves: [[[_branch(leaves[at : at + 50])] for at in range(0, len(leaves), 50)]],
    ],
    ids=["list", "list of branches", "dict of branches", "branches of several"],
)
def test_frees_few_at_a_time_however_they_are_nested(wrap: Any) -> None:
    """Between two steps of the work, in which others may have their turn, only some values go."""
    step, freed = 0, Counter[int]()

    def count_step(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal step
        if frame.f_code.co_filename != dispose.__code__.co_filename:
            return None
        step += 1
        return count_step

    def note() -> None:
        freed[step] += 1

    leaves: list[Any] = [Leaf() for _ in range(5_000)]
    for leaf in leaves:
        weakref.finalize(leaf, note)
    del leaf
    values = [wrap(leaves)]
    leaves = []
    before = sys.gettrace()
    sys.settrace(count_step)
    try:
        dispose(values)
    finally:
        sys.settrace(before)
    assert freed.total() == 5_000
    assert max(freed.values()) <= 250
