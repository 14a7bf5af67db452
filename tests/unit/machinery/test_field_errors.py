from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.field_errors import Path, not_supported


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
