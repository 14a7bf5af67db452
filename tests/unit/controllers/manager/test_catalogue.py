from __future__ import annotations

import pytest

from pilothouse.controllers.manager.catalogue import CONTROLLERS, Row, UnknownController, choose

ROWS = (Row("a-controller", "a", alias="a"), Row("b-controller", "b"), Row("late-controller", "c", default=False))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["*"], ["a-controller", "b-controller"]),
        ([], []),
        (["a"], ["a-controller"]),
        (["*", "-b-controller"], ["a-controller"]),
        (["-b-controller", "*", "b-controller"], ["a-controller"]),
        (["*", "late-controller"], ["a-controller", "b-controller", "late-controller"]),
        (["-*"], []),
    ],
)
def test_choice(names: list[str], expected: list[str]) -> None:
    assert [row.name for row in choose(names, ROWS)] == expected


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownController, match='"x" is not in the list of known controllers'):
        choose(["*", "x"], ROWS)


def test_every_row_can_be_imported() -> None:
    for row in CONTROLLERS:
        assert callable(__import__(f"pilothouse.controllers.{row.module}", fromlist=["start"]).start)
