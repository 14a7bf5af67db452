"""Stores over a database of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[StorageFactory]:
    """Makes stores of any resource."""
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend)
    await cacher.open()
    yield StorageFactory(cacher)
    await cacher.close()
    await backend.close()
