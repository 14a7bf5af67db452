import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from types import SimpleNamespace

from pilothouse.storage.backends.sqlite import SQLiteBackend, checkpoints
from pilothouse.storage.backends.sqlite.checkpoints import PAGES_GATHERED
from pilothouse.storage.backends.sqlite.schema import PAGE_BYTES, PAGES_AT_MOST, connect_reader

NAME = "pilothouse-sqlite-checkpoints"
LONG = b"x" * 20_000
# Whether another process can have all of a database to itself: whoever closes the last connection removes its log.
INTRUDER = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("kept out")
"""


async def fill(store, pages, name="many"):
    each = len(LONG) // PAGE_BYTES + 1
    for number in range(pages // each):
        await store.create(f"/{name}/{number}", LONG)


def log_of(path):
    return os.path.getsize(path + "-wal")


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def test_the_log_is_lengthened_ahead_of_what_is_written(store, path):
    await store.create("/a", b"x")
    await until(lambda: log_of(path) >= 1 << 20)
    long = log_of(path)
    for number in range(20):
        await store.create(f"/b/{number}", b"x")
    assert log_of(path) == long


async def test_zeros_behind_the_log_are_nothing_to_whoever_opens_it(store, path, tmp_path):
    for number in range(20):
        await store.create(f"/a/{number}", b"%d" % number)
    left = tmp_path / "left"
    left.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(path + suffix, left / f"store.db{suffix}")
    other = SQLiteBackend(str(left / "store.db"), upkeep_seconds=0)
    await other.open()
    assert [item.value for item in (await other.list("/a/")).items] == [b"%d" % n for n in sorted(range(20), key=str)]
    await other.create("/a/new", b"x")
    await other.close()


async def test_a_thread_that_cannot_open_the_database_tries_again(store, path, monkeypatch, caplog):
    def no_descriptors(path):
        raise sqlite3.OperationalError("unable to open database file")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "connect_reader", no_descriptors)
        await fill(store, PAGES_GATHERED, "first")
        await until(lambda: "cannot be copied into the database yet" in caplog.text)
    await fill(store, PAGES_GATHERED, "second")
    await until(lambda: os.path.getsize(path) > PAGES_GATHERED * PAGE_BYTES / 2)


async def test_a_thread_copies_the_log_and_it_is_begun_again(store, path):
    await fill(store, PAGES_GATHERED)
    await until(lambda: any(thread.name == NAME for thread in threading.enumerate()))
    await until(lambda: os.path.getsize(path) > PAGES_GATHERED * PAGE_BYTES / 2)
    await fill(store, 4 * PAGES_GATHERED, "more")
    assert log_of(path) < PAGES_AT_MOST * PAGE_BYTES
    await store.close()
    assert not any(thread.name == NAME for thread in threading.enumerate())


async def test_a_reader_of_the_past_keeps_the_log_and_nothing_else(store, path):
    with closing(connect_reader(path)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM log").fetchone() == (0,)
        await fill(store, 3 * PAGES_GATHERED)
        assert log_of(path) > 3 * PAGES_GATHERED * PAGE_BYTES
        assert reader.execute("SELECT COUNT(*) FROM log").fetchone() == (0,)
        reader.execute("COMMIT")
    await fill(store, 2 * PAGES_GATHERED, "more")
    before = log_of(path)
    await fill(store, 2 * PAGES_GATHERED, "even more")
    assert log_of(path) == before


async def test_the_log_is_lengthened_again_after_it_was_cut(store, path):
    revision = await store.create("/a", b"x")
    await store.compact(revision)
    assert log_of(path) == 0
    await store.create("/b", b"x")
    await until(lambda: log_of(path) >= 1 << 20)


async def test_a_disk_without_room_for_zeros_is_no_trouble(store, path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert await store.create("/a", b"x") == 2
    await store.create("/b", b"x")
    assert not store.error
    assert log_of(path) < 1 << 20


async def test_two_stores_of_one_process_keep_their_locks_when_one_is_closed(store, path):
    other = SQLiteBackend(path, upkeep_seconds=0)
    await other.open()
    await other.create("/a", b"x")
    await other.close()

    def intrude():
        return subprocess.run([sys.executable, "-c", INTRUDER, path], capture_output=True, text=True, check=True).stdout

    assert await asyncio.to_thread(intrude) == "kept out\n"


async def test_a_database_that_cannot_be_copied_is_told_of_and_tried_again(store, path, monkeypatch, caplog):
    syncs = []

    def fail(descriptor):
        syncs.append(descriptor)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    await fill(store, 2 * PAGES_GATHERED)
    await until(lambda: len(syncs) >= 2)
    monkeypatch.undo()
    await fill(store, 2 * PAGES_GATHERED, "more")
    assert "cannot be copied into the database yet: [Errno 5]" in caplog.text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_without_a_thread_left_writing_goes_on(store, path, monkeypatch):
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(checkpoints, "threading", SimpleNamespace(Thread=NoThread))
    async with asyncio.timeout(60):
        await fill(store, 2 * PAGES_GATHERED)
    monkeypatch.undo()
    assert not store.error
    await fill(store, PAGES_GATHERED, "more")
    await until(lambda: any(thread.name == NAME for thread in threading.enumerate()))
