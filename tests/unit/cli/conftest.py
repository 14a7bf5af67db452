"""Commands set the log of the process up; what was there before comes back after each test."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _kept_log(kept_log: None) -> None:
    """All tests here run commands."""
