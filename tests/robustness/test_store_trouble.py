"""A store in trouble: clients get a clear Status without paths, probes see it, and a damaged file is told at start."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pilothouse.storage.backends.contract import Unavailable
from pilothouse.storage.backends.sqlite.backend import SQLiteBackend
from pilothouse.testing.in_process import InProcessServer

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str, size: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "x" * size}}


async def test_a_full_disk() -> None:
    async with InProcessServer() as server:
        backend: Any = server.process.storage.backend
        assert (await server.request("POST", MAPS, config_map("before", 10))).status == 201
        pages = await backend._perform(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        await backend._perform(lambda c: c.execute(f"PRAGMA max_page_count = {pages}").fetchall())
        refused = await server.request("POST", MAPS, config_map("during", 500_000))
        assert (refused.status, refused.json["reason"]) == (507, "InsufficientStorage")
        assert str(server.data_dir) not in refused.body.decode()
        # Somebody looks every second whether there is room again, and small things still find some.
        async with asyncio.timeout(120):
            while (await server.request("GET", "/readyz")).status != 500:
                assert (await server.request("POST", MAPS, config_map("during", 500_000))).status == 507
        assert (await server.request("GET", f"{MAPS}/before")).status == 200
        await backend._perform(lambda c: c.execute("PRAGMA max_page_count = 1000000").fetchall())
        assert (await server.request("POST", MAPS, config_map("during", 500_000))).status == 201
        async with asyncio.timeout(120):
            while (await server.request("GET", "/readyz")).status != 200:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_store_that_is_taken_away(suffix: str, replaced: bool) -> None:
    """What would be written into files that nobody finds again is refused, until they are back."""
    async with InProcessServer() as server:
        file = server.data_dir / f"store.db{suffix}"
        away = server.data_dir / "away"
        assert (await server.request("POST", MAPS, config_map("before", 10))).status == 201
        file.rename(away)
        if replaced:
            file.write_bytes(b"")
        async with asyncio.timeout(120):
            while (ready := await server.request("GET", "/readyz")).status != 500:
                await asyncio.sleep(0.05)
        assert b"failed" in ready.body
        refused = await server.request("POST", MAPS, config_map("during", 10))
        assert (refused.status, str(server.data_dir) in refused.body.decode()) == (500, False)
        assert "removed or replaced" in refused.json["message"]
        assert (await server.request("GET", f"{MAPS}/before")).status == 200
        away.rename(file)
        async with asyncio.timeout(120):
            while (await server.request("GET", "/readyz")).status != 200:
                await asyncio.sleep(0.05)
        assert (await server.request("POST", MAPS, config_map("after", 10))).status == 201


async def test_a_disk_that_takes_nothing() -> None:
    """Probes see it from the first write that fails, for as long as nothing can be written; reads go on."""
    async with InProcessServer() as server:
        backend: Any = server.process.storage.backend
        assert (await server.request("POST", MAPS, config_map("before", 10))).status == 201
        await backend._perform(lambda c: c.execute("PRAGMA query_only = ON").fetchall())
        refused = await server.request("POST", MAPS, config_map("during", 10))
        assert (refused.status, str(server.data_dir) in refused.body.decode()) == (500, False)
        assert (await server.request("GET", "/readyz")).status == 500
        with pytest.raises(Unavailable):
            await backend.maintain()
        assert (await server.request("GET", "/readyz")).status == 500
        assert (await server.request("GET", f"{MAPS}/before")).status == 200
        await backend._perform(lambda c: c.execute("PRAGMA query_only = OFF").fetchall())
        async with asyncio.timeout(120):
            while (await server.request("GET", "/readyz")).status != 200:
                await asyncio.sleep(0.05)
        assert (await server.request("POST", MAPS, config_map("during", 10))).status == 201


async def test_whoever_looks_whether_the_disk_takes_something_writes(tmp_path: Path) -> None:
    backend: Any = SQLiteBackend(str(tmp_path / "store.db"), upkeep_seconds=0)
    await backend.open()
    with closing(sqlite3.connect(tmp_path / "store.db")) as other:
        for _ in range(2):
            seen = other.execute("PRAGMA data_version").fetchone()
            await backend._perform(backend._writer.log.probe)
            assert other.execute("PRAGMA data_version").fetchone() != seen
    await backend.close()


def test_a_damaged_file_ends_the_start_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"SQLite format 3\0" + b"\xa5" * 50_000)
    ended = subprocess.run(
        [sys.executable, "-m", "pilothouse", "serve", "--data-dir", str(tmp_path), "--secure-port", "16443"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert "pilothouse store check" in ended.stderr
    assert "Traceback" not in ended.stderr
