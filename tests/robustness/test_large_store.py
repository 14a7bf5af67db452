"""The first start on a store that holds a hundred thousand objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.storage.backends.sqlite import SQLiteBackend

OBJECTS = 100_000
AT_ONCE = 2_000
PATIENCE_SECONDS = 900.0
MAPS = "/api/v1/namespaces/default/configmaps"
Launch = Callable[..., Any]


async def fill(path: Path) -> None:
    backend = SQLiteBackend(str(path), upkeep_seconds=0)
    await backend.open()
    try:
        for start in range(0, OBJECTS, AT_ONCE):
            await asyncio.gather(*(backend.create(*_object(n)) for n in range(start, start + AT_ONCE)))
    finally:
        await backend.close()


def _object(number: int) -> tuple[str, bytes]:
    name = f"map-{number:06}"
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    value = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"x": "y" * 1000}}
    return f"/registry/configmaps/default/{name}", json.dumps(value).encode()


@pytest.mark.soak
def test_it_is_ready_only_when_all_is_there(launch: Launch, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    asyncio.run(fill(data / "store.db"))
    server = launch(data, within=PATIENCE_SECONDS)
    assert b"[-]" not in server.call("GET", "/readyz?verbose")[2]
    status, _, page = server.call("GET", f"{MAPS}?limit=1")
    assert status == 200
    assert page["metadata"]["remainingItemCount"] >= OBJECTS - 1
    assert server.call("GET", f"{MAPS}/map-099999")[0] == 200
    log = server.log.read_text()
    assert log.index("starting: opening the store") < log.index("starting: all post-start hooks are done")
    assert "Traceback" not in log
