"""Notes for audit events: first come, first served, and only under proper names."""

from __future__ import annotations

import pytest

from pilothouse.admission.annotations import annotate


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        ("hook.example.com/checked", True),
        ("hook.example.com/checked/twice", False),
        ("checked", False),
        ("hook.example.com/", False),
        ("Not a name/checked", False),
    ],
)
def test_names(key: str, kept: bool) -> None:
    notes: dict[str, str] = {}
    annotate(notes, key, "yes")
    assert (key in notes) is kept


def test_the_first_value_stays() -> None:
    notes: dict[str, str] = {}
    annotate(notes, "hook.example.com/checked", "first")
    annotate(notes, "hook.example.com/checked", "second")
    assert notes == {"hook.example.com/checked": "first"}
