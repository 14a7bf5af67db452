"""Names that nothing can be asked for by."""

from __future__ import annotations

import pytest

from pilothouse.admission.refusals import unnameable


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a", ""),
        ("", "resource name may not be empty"),
        ("..", "invalid resource name \"..\": [may not be '..']"),
        ("a/b", "invalid resource name \"a/b\": [may not contain '/']"),
        ("a/%", "invalid resource name \"a/%\": [may not contain '/' may not contain '%']"),
    ],
)
def test_unnameable(name: str, why: str) -> None:
    assert unnameable(name) == why
