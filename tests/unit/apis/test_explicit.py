"""Empty lists and maps that were written out."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.explicit import keep_explicit, put_explicit, take_explicit

PLACES = (("spec", "overhead"), ("status", "claims"))


@pytest.mark.parametrize(
    ("given", "decoded", "kept"),
    [
        ({"spec": {"overhead": {}}}, {"spec": {}}, {"spec": {"overhead": {}}}),
        ({"status": {"claims": []}}, {"spec": {}, "status": {}}, {"spec": {}, "status": {"claims": []}}),
        ({"spec": {"overhead": None}}, {"spec": {}}, {"spec": {}}),
        (
            {"spec": {"overhead": {"cpu": "1"}}},
            {"spec": {"overhead": {"cpu": "1"}}},
            {"spec": {"overhead": {"cpu": "1"}}},
        ),
        ({"spec": {"overhead": ""}}, {"spec": {}}, {"spec": {}}),
        ({"status": {"claims": []}}, {"spec": {}}, {"spec": {}}),
        ({"spec": "nonsense"}, {"spec": {}}, {"spec": {}}),
    ],
)
def test_empty_values_come_back(given: Any, decoded: dict[str, Any], kept: Any) -> None:
    keep_explicit(given, decoded, PLACES)
    assert decoded == kept


def test_only_empty_values_are_taken_and_put_back() -> None:
    obj = {"spec": {"overhead": {}, "x": 1}, "status": {"claims": [1]}}
    taken = take_explicit(obj, PLACES)
    assert obj == {"spec": {"x": 1}, "status": {"claims": [1]}}
    put_explicit(obj, taken)
    assert obj == {"spec": {"overhead": {}, "x": 1}, "status": {"claims": [1]}}
