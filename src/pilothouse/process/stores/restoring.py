"""A copy of the embedded store put where a server finds it. It is opened first: a file that is not ours is refused."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from pilothouse.storage.backends.sqlite import SQLiteBackend


async def restore_snapshot(snapshot: Path, store: Path) -> int:
    """Put a snapshot in place; gives its revision. Raises OSError, StorageError."""
    arriving = await asyncio.to_thread(_bring, snapshot, store)
    try:
        backend = SQLiteBackend(str(arriving), upkeep_seconds=0)
        await backend.open()
        revision = await backend.current_revision()
        await backend.close()
        await asyncio.to_thread(_settle, arriving, store)
    finally:
        await asyncio.to_thread(_clean, arriving)
    return revision


def _bring(snapshot: Path, store: Path) -> Path:
    if store.exists():
        raise FileExistsError(f"{store} exists; a snapshot replaces nothing")
    store.parent.mkdir(parents=True, exist_ok=True)
    arriving = store.with_suffix(".restoring")
    shutil.copyfile(snapshot, arriving)
    return arriving


def _settle(arriving: Path, store: Path) -> None:
    with arriving.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(arriving, store)


def _clean(arriving: Path) -> None:
    for leftover in arriving.parent.glob(f"{arriving.name}*"):
        leftover.unlink()
