"""Commands set the log of the process up; what was there before comes back after each test."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def kept_log() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("pilothouse")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)
