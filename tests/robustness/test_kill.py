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


class Writer:
    """A process that writes until it has reported so many writes, and is killed then."""

    def __init__(self, path: str, run: int, lines: int, group: str = "w") -> None:
        self.reported: list[str] = []
        self._lines = lines
        self._process = subprocess.Popen(
            [sys.executable, str(WRITER), path, f"r{run}", group],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._collect)
        self._thread.start()

    def _collect(self) -> None:
        watchdog = threading.Timer(60, self._process.kill)
        watchdog.start()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.reported.append(line)
            if len(self.reported) == self._lines:
                self._process.send_signal(signal.SIGKILL)
        watchdog.cancel()

    def result(self) -> list[tuple[str, str, int, int]]:
        """Everything that was acknowledged: (verb, key, revision, length)."""
        self._thread.join()
        _, errors = self._process.communicate()
        assert self._process.returncode == -signal.SIGKILL, errors
        assert self.reported[0] == "ready\n"
        # The pipe may have been cut in the middle of the last line.
        words = [line.split() for line in self.reported[1:] if line.endswith("\n")]
        assert {line[0] for line in words} <= {"put", "del"}, words
        return [(verb, key, int(revision), int(length)) for verb, key, revision, length in words]


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
    current = 1
    for run in range(4):
        reported = Writer(path, run, choice.randrange(50, 1500)).result()
        revisions = [revision for _, _, revision, _ in reported]
        assert len(set(revisions)) == len(revisions)
        assert min(revisions) > current, "a new process goes on after the revisions of the old one"
        acknowledged.update((key, (revision, length)) for _, key, revision, length in reported)
        current = await check(path, acknowledged, max(revisions))


async def test_processes_that_share_a_store_do_not_harm_each_other_by_dying(tmp_path):
    path = str(tmp_path / "store.db")
    acknowledged: dict[str, tuple[int, int]] = {}
    writers = [Writer(path, run, 300 * (run + 1), group) for run, group in enumerate("abc")]
    reported = [line for writer in writers for line in writer.result()]
    revisions = [revision for _, _, revision, _ in reported]
    assert len(set(revisions)) == len(revisions)
    acknowledged.update((key, (revision, length)) for _, key, revision, length in reported)
    await check(path, acknowledged, max(revisions))
