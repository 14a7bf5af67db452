from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher


@pytest.fixture
async def cacher(tmp_path: Path) -> AsyncIterator[Cacher]:
    backend = SQLiteBackend(str(tmp_path / "store.db"))
    await backend.open()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    yield cacher
    await cacher.close()
    await backend.close()


@pytest.fixture
async def storage(cacher: Cacher) -> StorageFactory:
    return StorageFactory(cacher)
