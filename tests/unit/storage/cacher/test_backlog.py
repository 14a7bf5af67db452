import asyncio

import pytest

from pilothouse.storage.backends.contract import Event, Unavailable
from pilothouse.storage.cacher.backlog import Backlog
from pilothouse.storage.cacher.entries import Entry


class SlowReader:
    """Reads when it is let."""

    def __init__(self):
        self.gates = {}

    async def read_event(self, event, turn):
        await self.gates.setdefault(event.revision, asyncio.Event()).wait()
        return None if event.value == b"bad" else Entry(event.key, event.value, event.revision)

    def let(self, revision):
        self.gates.setdefault(revision, asyncio.Event()).set()


class Applied:
    def __init__(self):
        self.revisions, self.entries, self.tasks = [], {}, []
        self.reader = SlowReader()
        self.backlog = Backlog(self.reader, self.apply, self.spawn)

    def apply(self, event, entry):
        self.revisions.append(event.revision)
        self.entries[event.revision] = entry

    def spawn(self, work):
        self.tasks.append(asyncio.ensure_future(work))

    def add(self, revision, value=b"x", *, is_long=False):
        self.backlog.add(Event(f"/k{revision}", revision, value, created=True), is_long=is_long)

    async def done(self):
        await asyncio.gather(*self.tasks)


async def test_what_comes_behind_a_long_value_waits_for_it():
    applied = Applied()
    assert not applied.backlog.waiting
    applied.add(5, is_long=True)
    applied.add(6)
    applied.add(7, None)
    applied.add(8, is_long=True)
    assert applied.backlog.waiting
    assert applied.backlog.reached == 4
    applied.reader.let(8)
    await applied.backlog.wait(4)
    assert applied.revisions == []
    applied.reader.let(5)
    await applied.backlog.wait(7)
    assert applied.revisions[:3] == [5, 6, 7]
    await applied.done()
    assert applied.revisions == [5, 6, 7, 8]
    assert [revision for revision, entry in applied.entries.items() if entry is not None] == [5, 8]
    assert not applied.backlog.waiting
    applied.add(9, is_long=True)
    applied.reader.let(9)
    await applied.done()
    assert applied.revisions[-1] == 9


async def test_what_cannot_be_read_is_left_out():
    applied = Applied()
    applied.add(5, b"bad", is_long=True)
    applied.add(6)
    applied.reader.let(5)
    await applied.done()
    assert applied.revisions == [6]


async def test_who_waits_is_told_when_all_is_forgotten():
    applied = Applied()
    applied.add(5, is_long=True)
    waiting = [asyncio.ensure_future(applied.backlog.wait(5)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    applied.backlog.clear(Unavailable("the watch cache is closed"))
    with pytest.raises(Unavailable):
        await waiting[1]
    assert not applied.backlog.waiting
    # The value that was being read is nobody's any more; what comes then is not held up by it for ever.
    applied.add(6)
    applied.reader.let(5)
    await applied.done()
    assert applied.revisions == [6]


async def test_an_error_leaves_the_next_one_a_chance():
    applied = Applied()

    def fail(event, entry):
        raise ValueError("no")

    backlog = Backlog(applied.reader, fail, applied.spawn)
    backlog.add(Event("/k", 5, b"x", created=True), is_long=False)
    with pytest.raises(ValueError, match="no"):
        await applied.done()
    backlog.add(Event("/k", 6, b"x", created=True), is_long=False)
    assert len(applied.tasks) == 2
    with pytest.raises(ValueError, match="no"):
        await applied.tasks[1]
