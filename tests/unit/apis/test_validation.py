"""The small rules of validation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilothouse.apis import validation as validating
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.names import check_dns1123_label

AT = Path("spec")
Rule = Callable[[list[FieldError]], object]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (lambda errs: validating.non_negative(0, AT, "n", errs), ""),
        (
            lambda errs: validating.non_negative(-1, AT, "n", errs),
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (lambda errs: validating.positive(0, AT, "n", errs), "Invalid value: 0: must be greater than zero"),
        (lambda errs: validating.one_of("a", ("a", "b"), AT, "n", errs), ""),
        (lambda errs: validating.one_of("", ("a",), AT, "n", errs), 'Unsupported value: "": supported values: "a"'),
        (lambda errs: validating.one_of_required("", ("a",), AT, "n", errs), "Required value"),
        (
            lambda errs: validating.one_of_required("x", ("a",), AT, "n", errs),
            'Unsupported value: "x": supported values: "a"',
        ),
        (lambda errs: validating.present([], AT, "n", errs, "why"), "Required value: why"),
        (
            lambda errs: validating.well_formed("a.b", check_dns1123_label, AT, "n", errs),
            'Invalid value: "a.b": must not contain dots',
        ),
        (lambda errs: validating.unchanged(1, 1, AT, "n", errs), ""),
        (lambda errs: validating.unchanged(1, 2, AT, "n", errs), "Invalid value: 1: field is immutable"),
        (
            lambda errs: validating.in_range(9, 1, 5, AT, "n", errs),
            "Invalid value: 9: must be between 1 and 5, inclusive",
        ),
        (
            lambda errs: validating.non_negative_quantity("-1", AT.child("n"), errs),
            'Invalid value: "-1": must be greater than or equal to 0',
        ),
        (lambda errs: validating.non_negative_quantity("1", AT.child("n"), errs), ""),
    ],
)
def test_rules(rule: Rule, wanted: str) -> None:
    errs: list[FieldError] = []
    rule(errs)
    assert [str(error) for error in errs] == ([f"spec.n: {wanted}"] if wanted else [])


def test_finalizers() -> None:
    errs: list[FieldError] = []
    validating.standard_finalizers({"finalizers": ["kubernetes", "a.b/c", "mine"]}, errs)
    assert [error.field for error in errs] == ["metadata.finalizers[2]"]


@pytest.mark.parametrize(
    ("values", "positions"),
    [([], set()), (["a", "b"], set()), (["a", "a", "b", "a"], {1, 3}), (["", ""], {1})],
)
def test_positions_of_what_stood_before(values: list[str], positions: set[int]) -> None:
    assert validating.repeats(values) == positions


def test_long_lists_take_one_pass() -> None:
    assert len(validating.repeats(["x"] * 1_000_000)) == 999_999
