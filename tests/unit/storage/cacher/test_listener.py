"""Events are taken by the listeners of waiting consumers, in order and once, and wake the consumer for all else."""

import asyncio

from pilothouse.net.turns import WriteTurns
from pilothouse.storage.cacher.audience import Audience
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.watcher import Watcher

PODS = "/registry/pods/"


class Source:
    def __init__(self):
        self.audience, self.turns, self.revision = Audience(PODS), WriteTurns(), 0

    def happen(self, count=1):
        for _ in range(count):
            self.revision += 1
            key = f"{PODS}a/x"
            self.audience.dispatch(Change(key, self.revision, Entry(key, b"", self.revision), None, None, 0.0))

    def join(self, watcher):
        self.audience.add(watcher)
        watcher.go_live()
        return ()

    async def read(self, entries):
        return entries

    def leave(self, watcher):
        self.audience.discard(watcher)


class Consumer:
    """Takes batches like any consumer, and as a listener while `open`; notes in `seen` what came which way."""

    def __init__(self, source, limit=1000):
        self.watcher = Watcher(source, PODS, source.revision, limit=limit)
        self.seen, self.most, self.open = [], 1000, True
        self.written = []
        self.write = self.written.append
        self.ready = lambda: source.turns.add(self)
        self.watcher.listen(self)
        self.task = asyncio.create_task(self.consume())

    def outgoing(self):
        events = self.watcher.take()
        if not events:
            return None
        if not self.open:
            self.watcher.give_back(events)
            return None
        taken = [event.revision for event in events[: self.most]]
        if len(events) > self.most:
            self.watcher.give_back(events[self.most :])
        self.seen.append(("listener", taken))
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
    await turns()
    source.happen()
    await turns()
    assert consumer.seen == [("listener", [1, 2, 3]), ("listener", [4])]
    assert consumer.written == [b"[1, 2, 3]", b"[4]"]
    consumer.watcher.stop()
    await consumer.task


async def test_what_the_listener_leaves_comes_to_the_consumer_after_it():
    source = Source()
    consumer = await consumer_of(source)
    consumer.most = 2
    source.happen(5)
    await turns()
    source.happen()
    await turns()
    assert consumer.seen == [("listener", [1, 2]), ("task", [3, 4, 5]), ("listener", [6])]
    consumer.watcher.stop()
    await consumer.task


async def test_a_closed_listener_leaves_everything_to_the_consumer():
    source = Source()
    consumer = await consumer_of(source)
    consumer.open = False
    source.happen(2)
    await turns()
    consumer.open = True
    source.happen()
    await turns()
    assert consumer.seen == [("task", [1, 2]), ("listener", [3])]
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


async def test_no_listener_is_asked_once_the_consumer_has_gone():
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
    assert consumer.seen == [("listener", [1, 1])]
    consumer.watcher.stop()
    await consumer.task


async def test_a_burst_beyond_the_limit_ends_the_watch_with_what_fits():
    source = Source()
    consumer = await consumer_of(source, limit=3)
    source.happen(5)
    await consumer.task
    assert consumer.seen == [("task", [1, 2, 3]), "end"]
    assert consumer.watcher.overflowed
