"""A watch goes at the pace of its client, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilothouse.endpoints.verbs import watch
from pilothouse.endpoints.verbs.watch_encoding import EventEncoder
from pilothouse.net.messages import ClientDisconnected
from pilothouse.net.writing import unframed
from pilothouse.storage.cacher import Entry, Watcher, WatchEvent
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.delivering import Deliveries


class Source:
    """A resource in which nothing happens."""

    def __init__(self) -> None:
        self.deliveries = Deliveries()
        self.left = 0

    def join(self, watcher: Watcher) -> Sequence[Change] | None:
        watcher.go_live()
        return ()

    async def read_history(self, prefix: str, after: int) -> tuple[list[Change], int]:
        raise AssertionError

    def leave(self, watcher: Watcher) -> None:
        self.left += 1


class Reader:
    """A client that reads, or not, as told; the watch ends from the server's side at one of its waits."""

    def __init__(self, watcher: Watcher, *answers: bool, ends_at: int) -> None:
        self._watcher = watcher
        self._answers = answers
        self._ends_at = ends_at
        self.waits = 0
        self.written: list[bytes] = []

    def open_gate(self) -> None:
        return None  # nothing happens after the initial events

    def write_frames(self, frames: bytes) -> None:
        self.written.append(frames)

    async def drain(self, patience: float | None = None) -> bool:
        assert patience == watch.PATIENCE
        if self.waits == self._ends_at:
            self._watcher.end()
        self.waits += 1
        return self._answers[self.waits - 1]


def watcher_of(source: Source, count: int) -> Watcher:
    # A watcher delivers its initial entries from the end of the list.
    return Watcher(source, "/", 9, initial=[Entry(f"/{number}", b"{}", 9) for number in reversed(range(count))])


def encode(event: WatchEvent) -> bytes:
    return event.entry.key.encode().ljust(watch.PIECE // 4, b".")


async def run(watcher: Watcher, reader: Reader) -> None:
    await watch.run_watch(watcher, EventEncoder(encode, unframed), lambda _: b"", reader, 60.0)  # type: ignore[arg-type]


async def test_events_leave_in_pieces() -> None:
    source = Source()
    watcher = watcher_of(source, 10)
    reader = Reader(watcher, True, True, True, ends_at=2)
    await run(watcher, reader)
    assert [len(piece) for piece in reader.written] == [watch.PIECE, watch.PIECE, watch.PIECE // 2]
    assert [key.rstrip(b".") for key in b"".join(reader.written).split(b"/")[1:]] == [b"%d" % n for n in range(10)]
    assert source.left == 1


async def test_a_slow_client_is_waited_for_while_its_watch_goes_on() -> None:
    watcher = watcher_of(Source(), 4)
    reader = Reader(watcher, *[False] * 50, True, True, ends_at=51)
    await run(watcher, reader)
    assert reader.waits == 52


async def test_a_client_may_take_what_is_left_after_the_end() -> None:
    watcher = watcher_of(Source(), 8)
    reader = Reader(watcher, False, True, False, True, True, ends_at=0)
    await run(watcher, reader)
    assert sum(map(len, reader.written)) == 2 * watch.PIECE


async def test_once_the_watch_has_ended_patience_ends_too() -> None:
    source = Source()
    watcher = watcher_of(source, 4)
    reader = Reader(watcher, *[False] * 9, ends_at=3)
    with pytest.raises(ClientDisconnected):
        await run(watcher, reader)
    assert reader.waits == 5  # the wait in which the watch ended, and one more as a grace
    assert source.left == 1
