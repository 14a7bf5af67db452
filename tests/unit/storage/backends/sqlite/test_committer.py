"""A process beside the writer commits for it: the same answers, whatever becomes of that process."""

import asyncio
import errno
import gc
import os
import signal
import sqlite3
import textwrap
from contextlib import closing
from subprocess import Popen

import pytest

from pilothouse.storage.backends.contract import Conflict, KeyExists
from pilothouse.storage.backends.sqlite import SQLiteBackend, commit_process, committer, writer
from pilothouse.storage.backends.sqlite.schema import BUSY_TIMEOUT_MS, PAGES_AT_MOST

pytestmark = pytest.mark.skipif(
    not committer._IS_POSSIBLE, reason="this system has no sockets that keep messages apart"
)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(committer, "MANY_BATCHES", 1)
    monkeypatch.setattr(committer, "processors", lambda: 2)


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Have another process stand in, which gets ``connection``, to the database, and ``parent``, a connected socket."""

    def pretend(script):
        start = "import marshal, os, socket, sqlite3, sys, time\n"
        start += "path, parent = sys.argv[1], socket.socket(fileno=int(sys.argv[2]))\n"
        start += "connection = sqlite3.connect(path, isolation_level=None, uri=True)\n"
        file = tmp_path / "stand_in.py"
        file.write_text(start + textwrap.dedent(script))
        monkeypatch.setattr(commit_process, "__file__", str(file))

    return pretend


async def until(condition):
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.005)


async def begin(store):
    """Write until there is a process that is ready."""
    number = 0
    while not store._writer._committer.is_ready:
        number += 1
        await store.create(f"/begun/{number}", b"x")
        await asyncio.sleep(0.001)
    return await store.current_revision()


def pid_of(store):
    return store._writer._committer._process.pid


def rows(path, prefix):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT key, value FROM log WHERE key GLOB ? ORDER BY revision", (prefix + "*",)
        ).fetchall()


def test_the_settings_are_those_of_the_writer():
    assert "synchronous = FULL" in commit_process._SETTINGS
    assert f"busy_timeout = {BUSY_TIMEOUT_MS}" in commit_process._SETTINGS
    assert f"wal_autocheckpoint = {PAGES_AT_MOST}" in commit_process._SETTINGS


async def test_it_writes_what_the_thread_would(store, path):
    revision = await begin(store)
    thread = []
    await store._perform(lambda connection: connection.set_trace_callback(thread.append))
    created = await store.create("/a", b"1", ttl_seconds=3600)
    updated = await store.update("/a", b"2", created)
    assert (created, updated) == (revision + 1, revision + 2)
    with pytest.raises(KeyExists):
        await store.create("/a", b"3")
    with pytest.raises(Conflict) as conflict:
        await store.update("/a", b"3", created)
    assert conflict.value.current.value == b"2"
    found = await store.get("/a")
    assert (found.value, found.revision, found.created) == (b"2", updated, created)
    await store.delete("/a", updated)
    assert await store.get("/a") is None
    many = await asyncio.gather(*(store.create(f"/many/{number}", b"x") for number in range(300)))
    assert many == list(range(updated + 2, updated + 302))
    assert not [statement for statement in thread if "INSERT" in statement]


async def test_long_batches_are_left_to_the_thread(store):
    await begin(store)
    thread = []
    await store._perform(lambda connection: connection.set_trace_callback(thread.append))
    await store.create("/long", bytes(committer.MOST_BYTES + 1))
    assert [statement for statement in thread if "INSERT" in statement]


async def test_what_others_write_is_seen_first(store, path):
    await begin(store)
    other = SQLiteBackend(path, upkeep_seconds=0)
    await other.open()
    try:
        theirs = await other.create("/theirs", b"x")
        assert await store.create("/ours", b"x") == theirs + 1
        with pytest.raises(KeyExists):
            await store.create("/theirs", b"y")
        assert await other.create("/again", b"x") == theirs + 2
    finally:
        await other.close()


async def test_nothing_is_lost_or_written_twice_when_it_is_killed_again_and_again(store, path):
    done = []

    async def create(group):
        for number in range(150):
            key = f"/k/{group}/{number}"
            done.append((await store.create(key, b"%d" % number), key))

    async def kill():
        for _ in range(8):
            await until(lambda: store._writer._committer.is_ready or len(done) == 600)
            if store._writer._committer.is_ready:
                os.kill(pid_of(store), signal.SIGKILL)
                await until(lambda: not store._writer._committer.is_ready)

    await asyncio.gather(kill(), *(create(group) for group in "abcd"))
    assert len({revision for revision, _ in done}) == 600
    assert sorted(key for key, _ in rows(path, "/k/")) == sorted(key for _, key in done)


WRITES_AND_DIES = """
parent.send(b"ready")
connection.execute(*marshal.loads(parent.recv(1 << 20)))
os._exit(1)
"""
DIES = """
parent.send(b"ready")
parent.recv(1 << 20)
os._exit(1)
"""
REFUSES = """
parent.send(b"ready")
while parent.recv(1 << 20):
    parent.send(b"not written")
"""
SAYS_NOTHING = """
parent.send(b"ready")
time.sleep(1000)
"""
IS_NEVER_READY = "os._exit(1)"


@pytest.mark.parametrize("script", [WRITES_AND_DIES, DIES, REFUSES, SAYS_NOTHING])
async def test_the_thread_finds_out_what_became_of_a_batch(store, path, pretend, monkeypatch, script):
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(committer, "PATIENCE_SECONDS", 0.1)
    pretend(script)
    revision = await begin(store)
    writes = (store.create("/a", b"1"), store.create("/begun/1", b"1"), store.create("/b", b"2"))
    first, second, third = await asyncio.gather(*writes, return_exceptions=True)
    assert (first, third) == (revision + 1, revision + 2)
    assert isinstance(second, KeyExists)
    assert rows(path, "/[ab]")[-2:] == [("/a", b"1"), ("/b", b"2")]
    assert await store.create("/c", b"3") == revision + 3


async def test_who_wrote_meanwhile_is_not_taken_for_it(store, path, pretend):
    """The numbers that a batch would have had are another's."""
    pretend(
        """
        parent.send(b"ready")
        parent.recv(1 << 20)
        base = connection.execute("SELECT MAX(revision) FROM log").fetchone()[0]
        connection.execute("INSERT INTO log VALUES (?, '/theirs', ?, 0, 0, NULL, X'31')", (base + 1, base + 1))
        os._exit(1)
        """
    )
    revision = await begin(store)
    assert await store.create("/ours", b"1") == revision + 2
    assert rows(path, "/theirs") + rows(path, "/ours") == [("/theirs", b"1"), ("/ours", b"1")]


async def test_without_it_all_goes_on(store, pretend):
    pretend(IS_NEVER_READY)
    for number in range(20):
        await store.create(f"/a/{number}", b"x")
    assert not store._writer._committer.is_ready


async def test_one_that_cannot_begin_is_not_started_again_and_again(store, pretend, monkeypatch):
    started = []
    monkeypatch.setattr(committer.subprocess, "Popen", lambda *a, **k: started.append(Popen(*a, **k)) or started[-1])
    pretend(IS_NEVER_READY)
    for number in range(10):
        await store.create(f"/a/{number}", b"x")
        if started:
            await asyncio.to_thread(started[-1].wait)
    assert len(started) == 1


async def test_without_descriptors_nothing_is_wrong_with_the_store(store, monkeypatch):
    def none_left(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    told = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    monkeypatch.setattr(committer.socket, "socketpair", none_left)
    for number in range(10):
        await store.create(f"/a/{number}", b"x")
    gc.collect()
    assert (store.error, told, store._writer._committer.is_ready) == ("", [], False)


async def test_long_keys_are_left_to_the_thread(store):
    key = "/" + "k" * 300_000
    await begin(store)
    pid = pid_of(store)
    revision = await store.create(key, b"")
    await store.delete(key, revision)
    assert (store._writer._committer.is_ready, pid_of(store)) == (True, pid)


async def test_what_is_too_long_for_the_socket_does_not_cost_the_process(store, monkeypatch):
    monkeypatch.setattr(writer, "MOST_BYTES", 1 << 30)
    revision = await begin(store)
    pid = pid_of(store)
    assert await store.create("/long", bytes(8 << 20)) == revision + 1
    assert (store._writer._committer.is_ready, pid_of(store)) == (True, pid)


async def test_it_makes_no_database(tmp_path):
    path = tmp_path / "gone"
    started = committer.Committer(str(path), asyncio.get_running_loop(), lambda is_written: None)
    connected = await asyncio.to_thread(started.start)
    assert await asyncio.to_thread(started._process.wait, 60) != 0
    assert not path.exists()
    connected.close()


async def test_it_ends_with_the_store(store):
    await begin(store)
    process = store._writer._committer._process
    await store.close()
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signals_to_all_processes_are_for_the_server(store, number):
    """A terminal and a service manager send them to every process, while the server still finishes its requests."""
    revision = await begin(store)
    pid = pid_of(store)
    os.kill(pid, number)
    assert await store.create("/a", b"x") == revision + 1
    assert (store._writer._committer.is_ready, pid_of(store)) == (True, pid)


async def test_the_log_is_still_copied_into_the_database(store, path):
    await begin(store)
    for number in range(60):
        await asyncio.gather(*(store.create(f"/a/{number}/{each}", b"x" * 3000) for each in range(20)))
    await until(lambda: os.path.getsize(path) > 3_000_000)
    assert store._writer._committer.is_ready
