import asyncio
import os
import sqlite3
import stat
import threading

import pytest

from pilothouse.storage.backends.contract import (
    Compacted,
    Conflict,
    KeyExists,
    StorageError,
    Unavailable,
    UnusableStore,
)
from pilothouse.storage.backends.sqlite import Retention, SQLiteBackend


async def on_writer(store, sql):
    return await store._perform(lambda connection: connection.execute(sql).fetchall())


async def test_files_are_for_their_owner_only(store, path):
    await store.create("/a", b"x")
    folder = os.path.dirname(path)
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(folder)}
    assert set(modes) == {"store.db", "store.db-wal", "store.db-shm", "store.db-revision"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


async def test_writes_are_synchronous_and_logged(store):
    assert await on_writer(store, "PRAGMA synchronous") == [(2,)]
    assert await on_writer(store, "PRAGMA journal_mode") == [("wal",)]


def foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()


def newer(path):
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA application_id = {0x50484F55}; CREATE TABLE log (x); PRAGMA user_version = 99;")
    connection.close()


def garbage(path):
    with open(path, "wb") as file:
        file.write(b"this is not a database" * 1000)


def damaged(path):
    connection = sqlite3.connect(path)
    connection.executescript(
        f"PRAGMA application_id = {0x50484F55}; PRAGMA user_version = 1; PRAGMA page_size = 512;"
        "CREATE TABLE log (revision INTEGER PRIMARY KEY, key TEXT, deleted INTEGER, expires INTEGER, value BLOB);"
        "CREATE INDEX log_by_key ON log (key, revision, deleted);"
    )
    connection.executemany(
        "INSERT INTO log VALUES (?, ?, 0, NULL, ?)", [(n, f"/{n}", b"x" * 200) for n in range(2, 99)]
    )
    connection.commit()
    connection.close()
    with open(path, "r+b") as file:
        file.seek(1024)
        file.write(b"\xee" * 20_000)


@pytest.mark.parametrize(
    "spoil, message",
    [
        (foreign, "is a database of another program"),
        (newer, r"was written by a newer version \(schema 99 > 1\)"),
        (garbage, "is not a usable database: file is not a database"),
        (damaged, "is not a usable database: .*malformed"),
        (os.mkdir, "cannot open .*: Is a directory"),
    ],
)
async def test_unusable_files_are_refused_clearly(tmp_path, spoil, message):
    path = str(tmp_path / "store.db")
    spoil(path)
    store = SQLiteBackend(path)
    with pytest.raises(UnusableStore, match=message):
        await store.open()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pilothouse-sqlite")]
    with pytest.raises(Unavailable):
        await store.create("/a", b"x")


async def test_many_writers_share_transactions(store):
    commits = []
    await store._perform(lambda connection: connection.set_trace_callback(commits.append))
    results = await asyncio.gather(*(store.create(f"/a/{number:03}", b"x") for number in range(200)))
    assert sorted(results) == list(range(2, 202))
    # The loop hands them over in parts of 32: a part is never torn apart, and parts that wait are joined.
    assert len([statement for statement in commits if "INSERT" in statement]) <= 7


async def test_writes_that_come_during_a_commit_are_the_next_one(store):
    commits, go_on = [], threading.Event()
    await store._perform(lambda connection: connection.set_trace_callback(commits.append))
    busy = asyncio.ensure_future(store._perform(lambda _: go_on.wait()))
    await asyncio.sleep(0)
    writes = []
    for number in range(50):
        writes.append(asyncio.ensure_future(store.create(f"/a/{number:02}", b"x")))
        await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(busy, *writes) == [True, *range(2, 52)]
    assert len([statement for statement in commits if "INSERT" in statement]) == 1


async def test_everything_is_done_in_the_order_in_which_it_was_asked(store):
    go_on = threading.Event()
    asked = [store._perform(lambda _: go_on.wait())]
    for number in range(3):
        asked += [store.create(f"/a/{number}", b"x"), on_writer(store, "SELECT MAX(revision) FROM log")]
    doing = [asyncio.ensure_future(each) for each in asked]
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(*doing) == [True, 2, [(2,)], 3, [(3,)], 4, [(4,)]]


async def test_closing_waits_for_all_that_was_asked_for(store, path):
    go_on = threading.Event()
    busy = asyncio.ensure_future(store._perform(lambda _: go_on.wait()))
    writes = [asyncio.ensure_future(store.create(f"/a/{number}", b"x")) for number in range(600)]
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    go_on.set()
    await closing
    assert await asyncio.gather(busy, *writes) == [True, *range(2, 602)]


async def test_the_loop_never_looks_into_the_database(store):
    """What a write ran into may be on the disk alone."""
    first = await store.create("/a", b"x")
    second = await store.update("/a", b"y", first)
    threads = set()

    def note(_):
        threads.add(threading.get_ident())

    await store._perform(lambda connection: connection.set_trace_callback(note))
    with pytest.raises(Conflict) as conflict:
        await store.update("/a", b"z", first)
    assert (conflict.value.current.value, conflict.value.current.revision) == (b"y", second)
    assert threads and threading.get_ident() not in threads


async def test_a_full_disk_fails_the_write_and_nothing_else(store):
    await store.create("/a/1", b"x")
    pages = (await on_writer(store, "PRAGMA page_count"))[0][0]
    await on_writer(store, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unavailable, match="the disk that keeps the objects is full"):
        await store.create("/a/2", b"x" * 100_000)
    assert await store.get("/a/2") is None
    await on_writer(store, "PRAGMA max_page_count = 1000000")
    assert await store.create("/a/2", b"x" * 100_000) == 3
    with pytest.raises(KeyExists):
        await store.create("/a/1", b"x")


async def test_a_locked_database_fails_the_write_and_nothing_else(store, path):
    await on_writer(store, "PRAGMA busy_timeout = 1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database is locked"):
        await store.create("/a/1", b"x")
    other.execute("ROLLBACK")
    other.close()
    assert await store.create("/a/1", b"x") == 2


async def test_a_key_that_is_no_text_is_refused(store):
    with pytest.raises(StorageError, match="not valid text"):
        await store.create("/a/\ud800", b"x")
    assert await store.create("/a/ü", b"x") == 2


async def test_compaction_gives_disk_space_back(store, path):
    revision = await store.create("/a/big", b"x" * 100_000)
    for number in range(100):
        revision = await store.update("/a/big", b"%d" % number * 50_000, revision)
    await store.delete("/a/big", revision)
    await store.create("/a/small", b"x")
    before = os.path.getsize(path) + os.path.getsize(path + "-wal")
    await store.compact(await store.current_revision())
    assert os.path.getsize(path) + os.path.getsize(path + "-wal") < before / 20
    assert [row[0] for row in await on_writer(store, "SELECT key FROM log")] == ["/a/small"]


async def test_writers_go_on_during_a_compaction(store):
    revision = await store.create("/a/1", b"x")
    for _ in range(2500):
        revision = await store.update("/a/1", b"x", revision)
    compacting = asyncio.create_task(store.compact(revision))
    await asyncio.sleep(0)
    await store.create("/a/2", b"x")
    assert not compacting.done()
    await compacting
    assert await on_writer(store, "SELECT COUNT(*) FROM log") == [(2,)]


async def test_an_interrupted_compaction_is_taken_up_again(path):
    store = SQLiteBackend(path, upkeep_seconds=0)
    await store.open()
    revision = await store.create("/a/1", b"x")
    for _ in range(1200):
        revision = await store.update("/a/1", b"x", revision)
    compacting = asyncio.create_task(store.compact(revision))
    await store.create("/a/2", b"x")
    compacting.cancel()
    await asyncio.gather(compacting, return_exceptions=True)
    await store.close()
    store = SQLiteBackend(path, upkeep_seconds=0)
    await store.open()
    with pytest.raises(Compacted):
        await store.get("/a/1", revision - 1)
    await store.compact(revision + 1)
    assert await on_writer(store, "SELECT COUNT(*) FROM log") == [(2,)]
    await store.close()


async def test_upkeep_that_fails_tells_so(store):
    await store.create("/a/event", b"x", -1)
    pages = (await on_writer(store, "PRAGMA page_count"))[0][0]
    for number in range(300):
        await store.create(f"/a/{number}", b"x" * 500, -1)
    await on_writer(store, f"PRAGMA max_page_count = {pages}")
    with pytest.raises(Unavailable, match="full"):
        await store.maintain()
    await on_writer(store, "PRAGMA max_page_count = 1000000")
    await store.maintain()
    assert await store.count("") == 0


async def test_upkeep_follows_the_clock(path):
    time = 1000.0
    store = SQLiteBackend(path, clock=lambda: time, upkeep_seconds=0, retention=Retention(seconds=300, marks=10))
    await store.open()
    revision = await store.create("/a/1", b"x")
    revision = await store.update("/a/1", b"y", revision)
    await store.maintain()
    await store.create("/a/event", b"x", 3600)
    time += 301
    await store.maintain()
    assert await store.compacted_revision() == 3
    time += 3600
    await store.maintain()
    assert await store.get("/a/event") is None
    await store.close()


async def test_upkeep_runs_by_itself(path):
    time = 1000.0
    store = SQLiteBackend(path, clock=lambda: time, upkeep_seconds=0.001)
    await store.open()
    watch = store.watch("/a/", 2)
    await store.create("/a/event", b"x", 10)
    time += 11
    async with asyncio.timeout(120):
        (event,) = await anext(watch)
    assert event.value is None
    await store.close()


async def test_closing_finishes_what_was_accepted(path):
    store = SQLiteBackend(path)
    await store.open()
    writes = [asyncio.create_task(store.create(f"/a/{number}", b"x")) for number in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert sorted(await asyncio.gather(*writes)) == list(range(2, 52))
    await store.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pilothouse-sqlite")]


async def test_a_failing_follower_does_not_hold_writers_up(store, caplog):
    class Broken:
        def receive(self, events, revision):
            raise ValueError("broken")

        def fail(self, error):
            pass

    store.follow(Broken())
    assert await store.create("/a/1", b"x") == 2
    assert "a follower" in caplog.text


async def test_another_handle_is_noticed_without_asking(path):
    store, other = SQLiteBackend(path, poll_seconds=0.001), SQLiteBackend(path)
    await store.open()
    await other.open()
    watch = store.watch("/a/", 1)
    waiting = asyncio.create_task(anext(watch))
    await other.create("/a/1", b"x")
    async with asyncio.timeout(120):
        (event,) = await waiting
    assert event.revision == 2
    assert store.unseen_revision() == 2
    await store.close()
    await other.close()
