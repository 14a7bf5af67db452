"""A process that is killed in the middle of its writes loses none that it acknowledged."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pilothouse.storage.backends.sqlite import SQLiteBackend

WRITER = Path(__file__).with_name("storage_writer.py")


def run_and_kill(path: str, run: int, lines: int) -> list[str]:
    """Start a writer, kill it when it has reported so many writes, and return everything that it reported."""
    process = subprocess.Popen(
        [sys.executable, str(WRITER), path, f"r{run}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    reported = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            reported.append(line)
            if len(reported) == lines:
                process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        _, errors = process.communicate()
        watchdog.cancel()
    assert reported and reported[0] == "ready\n", errors
    # The pipe may have been cut in the middle of the last line.
    return [line for line in reported[1:] if line.endswith("\n")]


async def check(path: str, acknowledged: dict[str, tuple[int, int]], newest: int) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store = SQLiteBackend(path, upkeep_seconds=0)
    await store.open()
    try:
        current = await store.current_revision()
        assert current >= newest
        found = {item.key: item for item in (await store.list("")).items}
        for key, (revision, length) in acknowledged.items():
            if key.endswith("/changing"):
                # The process may have written it once more without living to tell.
                assert key not in found or found[key].revision >= revision
                if key not in found:
                    assert length == 0 or current > revision
            else:
                assert (found[key].revision, len(found[key].value)) == (revision, length)
        history = await store.history("", await store.compacted_revision(), 10**6)
        revisions = [event.revision for event in history.events]
        assert revisions == list(range(current - len(revisions) + 1, current + 1))
        return current
    finally:
        await store.close()


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_acknowledged_write_is_lost(tmp_path, seed):
    path = str(tmp_path / "store.db")
    choice = random.Random(seed)
    acknowledged: dict[str, tuple[int, int]] = {}
    seen: set[int] = set()
    current = 1
    for run in range(4):
        reported = run_and_kill(path, run, choice.randrange(50, 1500))
        newest = current
        for line in reported:
            verb, key, revision, length = line.split()
            assert verb in ("put", "del"), line
            assert int(revision) > current, "revisions of a new process go on after those of the old one"
            assert int(revision) not in seen
            seen.add(int(revision))
            newest = max(newest, int(revision))
            acknowledged[key] = (int(revision), int(length))
        current = await check(path, acknowledged, newest)
