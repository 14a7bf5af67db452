from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.storage.backends.sqlite import SQLiteBackend


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a store is to be: in a folder that is not there yet."""
    return str(tmp_path / "data" / "store.db")


@pytest.fixture
async def store(path: str) -> AsyncIterator[SQLiteBackend]:
    """An open one, without upkeep."""
    store = SQLiteBackend(path, upkeep_seconds=0)
    await store.open()
    yield store
    await store.close()
