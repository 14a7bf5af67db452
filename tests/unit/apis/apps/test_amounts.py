from __future__ import annotations

import pytest

from pilothouse.apis.apps.amounts import is_nothing, validate_amount, validate_not_above_all
from pilothouse.machinery.field_errors import FieldError, Path

PERCENT = "a valid percent string must be a numeric string followed by an ending '%'"


@pytest.mark.parametrize(
    ("amount", "error"),
    [
        (0, ""),
        (3, ""),
        ("0%", ""),
        ("250%", ""),
        (-1, "f: Invalid value: -1: must be greater than or equal to 0"),
        ("5", f'f: Invalid value: "5": {PERCENT}'),
        ("\0", f'f: Invalid value: "\\u0000": {PERCENT}'),
        ("-5%", f'f: Invalid value: "-5%": {PERCENT}'),
    ],
)
def test_counts_and_percentages(amount: int | str, error: str) -> None:
    errs: list[FieldError] = []
    validate_amount(amount, Path("f"), errs)
    assert [str(e)[: len(error)] for e in errs] == ([error] if error else [])


@pytest.mark.parametrize(
    ("amount", "refused"),
    [("100%", False), ("101%", True), ("9" * 5000 + "%", True), (500, False), ("nonsense", False)],
)
def test_only_percentages_are_limited(amount: int | str, refused: bool) -> None:
    errs: list[FieldError] = []
    validate_not_above_all(amount, Path("f"), errs)
    assert bool(errs) is refused


@pytest.mark.parametrize(
    ("amount", "nothing"),
    [
        (0, True),
        (1, False),
        ("0%", True),
        ("00%", True),
        ("1%", False),
        ("x", True),
        ("7", False),
        (" 7", True),
        ("9" * 5000, False),
    ],
)
def test_nothing(amount: int | str, nothing: bool) -> None:
    assert is_nothing(amount) is nothing
