"""Selectors inside of objects."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.selectors import has_invalid_value, validate_label_selector, validate_selector_matches_template
from pilothouse.machinery import labels as label_selectors
from pilothouse.machinery.field_errors import FieldError, Path

BAD_VALUE: dict[str, Any] = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


def test_invalid_values_can_be_allowed() -> None:
    strict: list[FieldError] = []
    loose: list[FieldError] = []
    validate_label_selector(BAD_VALUE, Path("s"), strict)
    validate_label_selector(BAD_VALUE, Path("s"), loose, allow_invalid_values=True)
    assert [error.field for error in strict] == ["s.matchExpressions[0].values[0]"]
    assert loose == []
    assert has_invalid_value(BAD_VALUE)
    assert not has_invalid_value({"matchLabels": {"a": "b"}})
    assert not has_invalid_value(None)


@pytest.mark.parametrize(
    ("selector", "labels", "wanted"),
    [
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, []),
        ({}, None, []),
        (
            {"matchLabels": {"a": "b"}},
            {"z": "1", "a": "x"},
            ['t.metadata.labels: Invalid value: {"a":"x","z":"1"}: `selector` does not match template `labels`'],
        ),
        (
            {"matchLabels": {"a": "b"}},
            None,
            ["t.metadata.labels: Invalid value: null: `selector` does not match template `labels`"],
        ),
        (
            None,
            {"a": "x"},
            ['t.metadata.labels: Invalid value: {"a":"x"}: `selector` does not match template `labels`'],
        ),
    ],
)
def test_templates_must_be_selected(selector: Any, labels: Any, wanted: list[str]) -> None:
    errs: list[FieldError] = []
    parsed = label_selectors.from_object(selector)
    template = {"metadata": {"labels": labels} if labels else {}}
    validate_selector_matches_template(parsed, template, Path("t"), errs)
    assert [str(error) for error in errs] == wanted
