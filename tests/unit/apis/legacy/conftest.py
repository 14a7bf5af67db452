"""Legacy versions are known to these tests."""

from __future__ import annotations

import pytest

from pilothouse.apis.legacy import older


@pytest.fixture(scope="module", autouse=True)
def _legacy() -> None:
    older.load()
