from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.field_errors import MOST_MADE, FieldError, Path, bounded, not_supported, required


@pytest.mark.parametrize(
    ("value", "named", "plain"),
    [("a", '"a"', '"a"'), ("\0", '"\\u0000"', '"\\x00"'), ("<&>", '"\\u003c\\u0026\\u003e"', '"<&>"'), (3, "3", "3")],
)
def test_values_of_enumerations_show_as_json(value: Any, named: str, plain: str) -> None:
    texts = [not_supported(Path("a"), value, ["b"], plain=each).body for each in (False, True)]
    assert texts == [f'Unsupported value: {shown}: supported values: "b"' for shown in (named, plain)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (Path("a").child("b", "c"), "a.b.c"),
        (Path("a").child(""), "a[]"),
        (Path("a").key("").child("b"), "a[].b"),
        (Path().child("a"), "a"),
    ],
)
def test_steps_without_a_name_show_as_an_index(path: Path, text: str) -> None:
    assert str(path) == text


def test_errors_without_end_end_a_validation() -> None:
    def validate() -> list[FieldError]:
        return [required(Path("items").index(number), "") for number in range(10 * MOST_MADE)]

    found = bounded(validate)
    assert MOST_MADE // 2 < len(found) <= MOST_MADE
    assert found[:2] == [required(Path("items").index(0), ""), required(Path("items").index(1), "")]


def test_errors_that_were_only_tried_end_nothing() -> None:
    def validate() -> list[FieldError]:
        for number in range(2 * MOST_MADE):
            required(Path("tried").index(number), "")
        return [required(Path("kept"), "")]

    assert bounded(validate) == [required(Path("kept"), "")]


def test_nobody_counts_errors_made_elsewhere() -> None:
    assert bounded(list) == []
    assert len([required(Path("x"), "") for _ in range(MOST_MADE + 1)]) == MOST_MADE + 1
