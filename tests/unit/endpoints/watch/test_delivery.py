"""A watch goes at the pace of its client, and not for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from itertools import count

import pytest

from pilothouse.endpoints.watch import delivery
from pilothouse.endpoints.watch.delivery import PATIENCE, PIECE, Delivery, deliver
from pilothouse.endpoints.watch.encoding import EventEncoder
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.workers import LONG
from pilothouse.net.framing import UNFRAMED
from pilothouse.net.messages import ClientDisconnected
from pilothouse.net.turns import WriteTurns
from pilothouse.net.work_turns import PLACES
from pilothouse.net.writing import WriteGate
from pilothouse.storage.cacher import Entry, Watcher, WatchEvent
from pilothouse.storage.cacher.changes import Change


class Source:
    """A resource in which nothing happens."""

    def __init__(self) -> None:
        self.left = 0

    def join(self, watcher: Watcher) -> Sequence[Change] | None:
        watcher.go_live()
        return ()

    async def read_history(self, prefix: str, after: int) -> tuple[list[Change], int]:
        raise AssertionError

    async def read(self, entries: list[Entry]) -> list[Entry]:
        return entries

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
        assert patience == PATIENCE
        if self.waits == self._ends_at:
            self._watcher.end()
        self.waits += 1
        return self._answers[self.waits - 1]


def watcher_of(source: Source, count: int) -> Watcher:
    # A watcher delivers its initial entries from the end of the list.
    return Watcher(source, "/", 9, initial=[Entry(f"/{number}", b"{}", 9) for number in reversed(range(count))])


def encode(event: WatchEvent) -> bytes:
    return event.entry.key.encode().ljust(PIECE // 4, b".")


async def run(watcher: Watcher, reader: Reader) -> None:
    encoder = EventEncoder(encode, UNFRAMED, Observations((1.0,)))
    await deliver(watcher, encoder, lambda _: b"", reader, WriteTurns(), 60.0)  # type: ignore[arg-type]


async def test_events_leave_in_pieces() -> None:
    source = Source()
    watcher = watcher_of(source, 10)
    reader = Reader(watcher, True, True, True, ends_at=2)
    await run(watcher, reader)
    assert [len(piece) for piece in reader.written] == [PIECE, PIECE, PIECE // 2]
    assert [key.rstrip(b".") for key in b"".join(reader.written).split(b"/")[1:]] == [b"%d" % n for n in range(10)]
    assert source.left == 1


async def test_others_get_their_turns_though_the_client_reads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pods in protobuf, to a client on the same machine, held the loop for 1.7 s."""
    clock = count(10**12)  # the time at each place is over at once
    monkeypatch.setattr(delivery, "perf_counter", lambda: next(clock))
    watcher, turns = watcher_of(Source(), 20 * PLACES), 0
    reader = Reader(watcher, *[True] * 20 * PLACES, ends_at=5 * PLACES - 1)

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    await run(watcher, reader)
    task.cancel()
    assert turns >= 19


async def test_a_slow_client_is_waited_for_while_its_watch_goes_on() -> None:
    watcher = watcher_of(Source(), 4)
    reader = Reader(watcher, *[False] * 50, True, True, ends_at=51)
    await run(watcher, reader)
    assert reader.waits == 52


async def test_a_client_may_take_what_is_left_after_the_end() -> None:
    watcher = watcher_of(Source(), 8)
    reader = Reader(watcher, False, True, False, True, True, ends_at=0)
    await run(watcher, reader)
    assert sum(map(len, reader.written)) == 2 * PIECE


async def test_once_the_watch_has_ended_patience_ends_too() -> None:
    source = Source()
    watcher = watcher_of(source, 4)
    reader = Reader(watcher, *[False] * 9, ends_at=3)
    with pytest.raises(ClientDisconnected):
        await run(watcher, reader)
    assert reader.waits == 5  # the wait in which the watch ended, and one more as a grace
    assert source.left == 1


class Transport:
    def is_closing(self) -> bool:
        return False


class Waiting:
    """A watcher in which events wait."""

    def __init__(self, *events: WatchEvent) -> None:
        self.events = list(events)

    def take(self) -> list[WatchEvent]:
        taken, self.events = self.events, []
        return taken

    def give_back(self, events: list[WatchEvent]) -> None:
        self.events = events


def event_of(data: bytes) -> WatchEvent:
    return WatchEvent("ADDED", Entry("/a", data, 1))


def bytes_of(event: WatchEvent) -> bytes:
    if not event.entry.data:
        raise ValueError("cannot encode")
    return event.entry.data


def delivery_of(
    waiting: Waiting, transport: Transport, *, slow: bool = False, form: str = "", copies: bool = False
) -> Delivery:
    gate = WriteGate(transport)  # type: ignore[arg-type]
    gate.paused = slow
    encoder = EventEncoder(bytes_of, UNFRAMED, Observations((1.0,)), form, copies=copies)
    return Delivery(waiting, encoder, gate, WriteTurns())  # type: ignore[arg-type]


def test_a_piece_of_output_leaves_at_once_and_the_rest_is_given_back() -> None:
    transport, waiting = Transport(), Waiting(*[event_of(b"x" * (PIECE // 2)) for _ in range(5)])
    assert delivery_of(waiting, transport, copies=True).outgoing() == (transport, b"x" * PIECE)
    assert len(waiting.events) == 3


def test_one_event_leaves_whole_however_large() -> None:
    transport, waiting = Transport(), Waiting(event_of(b"x" * (3 * PIECE)))
    assert delivery_of(waiting, transport, copies=True).outgoing() == (transport, b"x" * (3 * PIECE))
    assert waiting.events == []


def test_two_deliveries_of_one_form_send_the_same_bytes() -> None:
    event, sent = event_of(b"abc"), []
    for _ in range(2):
        outgoing = delivery_of(Waiting(event), Transport(), form="f").outgoing()
        assert outgoing is not None
        sent.append(outgoing[1])
    assert sent[0] is sent[1] is event.memo["f"]


def test_what_is_for_a_slow_client_is_given_back() -> None:
    waiting = Waiting(event_of(b"a"), event_of(b"b"))
    assert delivery_of(waiting, Transport(), slow=True).outgoing() is None
    assert len(waiting.events) == 2


def test_an_encoding_that_fails_loses_nothing() -> None:
    waiting = Waiting(event_of(b"a"), event_of(b""))
    assert delivery_of(waiting, Transport()).outgoing() is None
    assert len(waiting.events) == 2


def test_nothing_leaves_when_the_consumer_was_faster() -> None:
    assert delivery_of(Waiting(), Transport()).outgoing() is None


def long_event() -> WatchEvent:
    return event_of(b"x" * LONG)


@pytest.mark.parametrize("form", ["", "json"])
def test_what_takes_long_to_encode_is_left_to_the_consumer(form: str) -> None:
    short, long = event_of(b"short"), long_event()
    watcher = Waiting(long)
    assert delivery_of(watcher, Transport(), form=form).outgoing() is None
    assert watcher.events == [long]
    watcher = Waiting(short, long)
    outgoing = delivery_of(watcher, Transport(), form=form).outgoing()
    assert outgoing is not None
    assert outgoing[1] == b"short"
    assert watcher.events == [long]


def test_what_was_made_for_others_is_delivered_at_once() -> None:
    long = long_event()
    long.memo["json"] = b"made"
    outgoing = delivery_of(Waiting(long), Transport(), form="json").outgoing()
    assert outgoing is not None
    assert outgoing[1] == b"made"


async def test_the_consumer_has_it_made_aside() -> None:
    threads = []

    def make(event: WatchEvent) -> bytes:
        threads.append(threading.get_ident() == threading.main_thread().ident)
        return event.entry.data

    watcher = Watcher(Source(), "/", 9, initial=[Entry("/long", b"x" * LONG, 9), Entry("/short", b"x", 9)])
    reader = Reader(watcher, True, True, True, ends_at=0)
    encoder = EventEncoder(make, UNFRAMED, Observations((1.0,)))
    await deliver(watcher, encoder, lambda _: b"", reader, WriteTurns(), 60.0)  # type: ignore[arg-type]
    assert threads == [True, False]
    assert b"".join(reader.written) == b"x" * (LONG + 1)
