"""A whole server for the tests of one module: threads that outlive it would confuse tests that count them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.pytest_plugin import pilothouse_namespace

__all__ = ["pilothouse_namespace"]


@pytest.fixture(scope="module")
def pilothouse_server() -> Iterator[InProcessServer]:
    with InProcessServer() as server:
        yield server
