"""Events reach the sinks of waiting consumers by call, in order and once, and wake the consumer for all else."""

import asyncio
import logging

import pytest

from pilothouse.storage.cacher import delivering
from pilothouse.storage.cacher.audience import Audience
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.delivering import Deliveries
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.watcher import Watcher

PODS = "/registry/pods/"


class Source:
    def __init__(self):
        self.audience, self.deliveries, self.revision = Audience(PODS), Deliveries(), 0

    def happen(self, count=1):
        for _ in range(count):
            self.revision += 1
            key = f"{PODS}a/x"
            self.audience.dispatch(Change(key, self.revision, Entry(key, b"", self.revision), None, None, 0.0))

    def join(self, watcher):
        self.audience.add(watcher)
        watcher.go_live()
        return ()

    def leave(self, watcher):
        self.audience.discard(watcher)


class Consumer:
    """Takes batches like any consumer, and by its sink while `open`; notes in `seen` what came which way."""

    def __init__(self, source, limit=1000):
        self.watcher = Watcher(source, PODS, source.revision, limit=limit)
        self.seen, self.most, self.open, self.broken = [], 1000, True, False
        self.written = []
        self.write = self.written.append
        self.watcher.pass_to(self)
        self.task = asyncio.create_task(self.consume())

    def take(self, events):
        if self.broken:
            raise ValueError("cannot encode")
        if not self.open:
            return None
        taken = [event.revision for event in events[: self.most]]
        del events[: self.most]
        self.seen.append(("sink", taken))
        return self, str(taken).encode()

    async def consume(self):
        while batch := await self.watcher.next_batch():
            self.seen.append(("task", [event.revision for event in batch]))
        self.seen.append("end")


async def turns(count=4):
    for _ in range(count):
        await asyncio.sleep(0)


async def consumer_of(source, **options):
    consumer = Consumer(source, **options)
    await turns()
    return consumer


async def test_what_happens_in_one_turn_is_one_delivery_and_wakes_nobody():
    source = Source()
    consumer = await consumer_of(source)
    source.happen(3)
    assert consumer.seen == []
    await turns(1)
    source.happen()
    await turns(1)
    assert consumer.seen == [("sink", [1, 2, 3]), ("sink", [4])]
    assert consumer.written == [b"[1, 2, 3]", b"[4]"]
    consumer.watcher.stop()
    await consumer.task


async def test_what_the_sink_leaves_comes_to_the_consumer_after_it():
    source = Source()
    consumer = await consumer_of(source)
    consumer.most = 2
    source.happen(5)
    await turns()
    source.happen()
    await turns()
    assert consumer.seen == [("sink", [1, 2]), ("task", [3, 4, 5]), ("sink", [6])]
    consumer.watcher.stop()
    await consumer.task


async def test_a_closed_sink_leaves_everything_to_the_consumer():
    source = Source()
    consumer = await consumer_of(source)
    consumer.open = False
    source.happen(2)
    await turns()
    consumer.open = True
    source.happen()
    await turns()
    assert consumer.seen == [("task", [1, 2]), ("sink", [3])]
    consumer.watcher.stop()
    await consumer.task


async def test_a_failing_sink_loses_nothing():
    source = Source()
    consumer = await consumer_of(source)
    consumer.broken = True
    source.happen(2)
    await turns()
    assert consumer.seen == [("task", [1, 2])]
    consumer.watcher.stop()
    await consumer.task


async def test_the_end_comes_after_what_happened_before_it():
    source = Source()
    consumer = await consumer_of(source)
    source.happen(2)
    consumer.watcher.end()
    source.happen()
    await consumer.task
    assert consumer.seen == [("task", [1, 2]), "end"]


async def test_no_sink_is_asked_once_the_consumer_has_gone():
    source = Source()
    consumer = await consumer_of(source)
    source.happen()
    consumer.watcher.stop()
    await consumer.task
    assert consumer.seen == ["end"] and consumer.written == []


async def test_bookmarks_take_the_same_way():
    source = Source()
    consumer = await consumer_of(source)
    source.happen()
    consumer.watcher.offer_bookmark(1)
    await turns()
    assert consumer.seen == [("sink", [1, 1])]
    consumer.watcher.stop()
    await consumer.task


async def test_a_burst_beyond_the_limit_ends_the_watch_with_what_fits():
    source = Source()
    consumer = await consumer_of(source, limit=3)
    source.happen(5)
    await consumer.task
    assert consumer.seen == [("task", [1, 2, 3]), "end"]
    assert consumer.watcher.overflowed


async def test_many_are_served_in_turns_and_others_get_theirs(monkeypatch):
    monkeypatch.setattr(delivering, "_WATCHERS_A_TURN", 10)
    source = Source()
    consumers = [await consumer_of(source) for _ in range(25)]
    source.happen()
    served = []
    for _ in range(3):
        await turns(1)
        served.append(sum(bool(consumer.seen) for consumer in consumers))
    assert served == [10, 20, 25]
    for consumer in consumers:
        consumer.watcher.stop()
        await consumer.task


async def test_what_happens_between_turns_joins_what_waits(monkeypatch):
    monkeypatch.setattr(delivering, "_WATCHERS_A_TURN", 1)
    source = Source()
    first, second = await consumer_of(source), await consumer_of(source)
    source.happen()
    await turns(1)
    source.happen()
    await turns()
    assert first.seen == [("sink", [1]), ("sink", [2])]
    assert second.seen == [("sink", [1, 2])]
    for consumer in first, second:
        consumer.watcher.stop()
        await consumer.task


async def test_a_turn_is_also_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(delivering, "_BYTES_A_TURN", 2)
    source = Source()
    consumers = [await consumer_of(source) for _ in range(2)]
    source.happen()
    await turns(1)
    assert [len(consumer.written) for consumer in consumers] == [1, 0]
    await turns(1)
    assert [len(consumer.written) for consumer in consumers] == [1, 1]
    for consumer in consumers:
        consumer.watcher.stop()
        await consumer.task


async def test_a_write_that_fails_costs_the_others_nothing(caplog: pytest.LogCaptureFixture):
    def fail(data):
        raise RuntimeError("gone")

    source = Source()
    bad, good = await consumer_of(source), await consumer_of(source)
    bad.write = fail
    source.happen()
    with caplog.at_level(logging.CRITICAL):
        await turns()
    assert good.written == [b"[1]"]
    for consumer in bad, good:
        consumer.watcher.stop()
        await consumer.task
