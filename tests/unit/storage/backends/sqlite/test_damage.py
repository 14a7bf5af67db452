"""Damage is found, named and repaired; a copy is one moment; a full disk refuses writes and recovers."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pilothouse.storage.backends.contract import Full, Unavailable, UnusableStore
from pilothouse.storage.backends.sqlite import SQLiteBackend, examine, repair, snapshot

LARGE = b"x" * 30_000
"""Fills pages of its own."""


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SQLiteBackend]:
    store = SQLiteBackend(str(path), upkeep_seconds=0)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def filled(path: Path, count: int = 20) -> None:
    async with opened(path) as store:
        for number in range(count):
            await store.create(f"/registry/maps/{number}", b"%d" % number + LARGE)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def break_value(path: Path, number: int) -> None:
    """Overwrite the pages of one value, past the one that leads to it, with something else."""
    data = bytearray(path.read_bytes())
    at = data.index(b"%dxxxx" % number)
    page = 4096
    first = (at // page + 2) * page
    data[first : first + page] = b"\xff" * page
    path.write_bytes(data)


async def test_a_sound_file(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db")
    report = examine(str(tmp_path / "store.db"))
    assert (report.is_sound, report.objects) == (True, 20)


async def test_a_damaged_value_is_named_and_all_others_are_saved(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await filled(path)
    break_value(path, 7)
    report = examine(str(path))
    assert not report.is_sound
    (lost,) = report.unreadable
    done = repair(str(path))
    assert done.lost == [lost]
    assert Path(done.old).exists()
    assert examine(str(path)).is_sound
    async with opened(path) as store:
        page = await store.list("/registry/maps/")
        wanted = {f"/registry/maps/{n}": n + 2 for n in range(20)}
        assert {item.key: item.revision for item in page.items} == {k: r for k, r in wanted.items() if k != lost}
        assert await store.create(lost, b"again") == 22


@pytest.mark.parametrize("page", range(0, 40, 3))
async def test_whichever_page_is_damaged_there_is_a_word(tmp_path: Path, page: int) -> None:
    path = tmp_path / "store.db"
    await filled(path)
    data = bytearray(path.read_bytes())
    data[page * 4096 : page * 4096 + 4096] = b"\xa5" * 4096
    path.write_bytes(data)
    try:
        async with opened(path) as store:
            found = {item.key for item in (await store.list("/registry/maps/")).items}
        report = examine(str(path))
        assert found == {f"/registry/maps/{n}" for n in range(20)} - set(report.unreadable)
    except (UnusableStore, Unavailable) as told:
        assert str(path) in str(told)


async def test_no_database_at_all(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"something else" * 1000)
    with pytest.raises(UnusableStore, match="pilothouse store check"):
        async with opened(path):
            pass
    assert not examine(str(path)).is_sound
    with pytest.raises((UnusableStore, sqlite3.DatabaseError)):
        repair(str(path))
    with pytest.raises(Unavailable):
        examine(str(tmp_path / "none.db"))


async def test_a_snapshot_is_one_moment_of_a_store_in_use(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    async with opened(path) as store:
        await store.create("/a", b"1")
        revision = snapshot(str(path), str(copy))
        await store.create("/b", b"2")
    assert revision == 2
    assert copy.stat().st_mode & 0o077 == 0
    async with opened(copy) as store:
        assert [item.key for item in (await store.list("/")).items] == ["/a"]
    with pytest.raises(Unavailable, match="exists already"):
        snapshot(str(path), str(copy))


async def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    async with opened(tmp_path / "store.db") as store:
        await store.create("/a", b"1")
        await store._perform(lambda c: c.execute("PRAGMA max_page_count = 10"))
        with pytest.raises(Full):
            await store.create("/b", LARGE * 10)
        assert store.error == "the disk that keeps the objects is full"
        assert (await store.get("/a")) is not None
        await store._perform(lambda c: c.execute("PRAGMA max_page_count = 100000"))
        await store.maintain()
        assert store.error == ""
        await store.create("/b", LARGE * 10)
