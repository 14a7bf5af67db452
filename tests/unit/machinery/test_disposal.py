"""What nobody else has is taken apart; what somebody else has stays whole."""

from __future__ import annotations

import weakref
from typing import Any

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
