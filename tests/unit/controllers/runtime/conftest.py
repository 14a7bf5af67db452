"""Clients of a real server in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.testing.in_process import InProcessServer


@pytest.fixture
async def clients() -> AsyncIterator[LoopbackClients]:
    """Clients of a whole server on the loop of the test."""
    async with InProcessServer() as server:
        yield LoopbackClients(server.process.cluster.handler)
