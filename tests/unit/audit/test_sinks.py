import asyncio

import pytest

from pilothouse.audit import sinks
from pilothouse.audit.events import Record
from pilothouse.audit.sinks import Batching, Forgiving, Joined, Throttle, Truncating
from pilothouse.machinery.supervision import RestartPolicy, Supervisor


class Kept:
    """Remembers batches; answers as told."""

    def __init__(self, answer=True):
        self.batches = []
        self.answer = answer
        self.closed = False
        self.gate = None

    async def process(self, records):
        if self.gate is not None:
            await self.gate.wait()
        self.batches.append([record.body for record in records])
        return self.answer

    async def close(self):
        self.closed = True


def record(text, short=None):
    return Record(text.encode(), None if short is None else short.encode)


async def test_joined_asks_all_and_all_must_succeed():
    first, second = Kept(answer=False), Kept()
    joined = Joined([first, second])
    assert await joined.process([record("{a}")]) is False
    assert first.batches == second.batches == [[b"{a}"]]
    await joined.close()
    assert first.closed and second.closed


async def test_forgiving():
    assert await Forgiving(Kept(answer=False)).process([record("{a}")]) is True


async def test_truncating_shortens_and_divides():
    kept = Kept()
    size = record("{}").size
    sink = Truncating(kept, size + 8, 2 * size + 10)
    records = [record("{a}"), record("{b}"), record("{" + "x" * 50 + "}", "{c}"), record("{" + "x" * 50 + "}")]
    assert await sink.process(records) is True
    assert kept.batches == [[b"{a}", b"{b}"], [b"{c}"]]


async def test_batches_are_full_or_overdue():
    kept = Kept()
    sink = Batching(kept, 100, 3, 3600.0)
    await sink.process([record(f"{{{n}}}") for n in range(7)])
    for _ in range(10):
        await asyncio.sleep(0)
    assert kept.batches == [[b"{0}", b"{1}", b"{2}"], [b"{3}", b"{4}", b"{5}"]]
    await sink.close()
    assert kept.batches[-1] == [b"{6}"]
    assert kept.closed


async def test_a_batch_of_one_does_not_wait():
    kept = Kept()
    sink = Batching(kept, 10, 1, 3600.0)
    await sink.process([record("{a}")])
    for _ in range(5):
        await asyncio.sleep(0)
    assert kept.batches == [[b"{a}"]]
    await sink.close()


async def test_what_does_not_fit_is_lost_and_said(caplog):
    kept = Kept()
    kept.gate = asyncio.Event()
    sink = Batching(kept, 2, 2, 0.0)
    assert await sink.process([record("{1}"), record("{2}"), record("{3}")]) is True
    assert sink.lost == 1
    assert "audit buffer queue blocked" in caplog.text
    kept.gate.set()
    await sink.close()
    assert kept.batches == [[b"{1}", b"{2}"]]


async def test_concurrent_batches_do_not_wait_for_each_other():
    kept = Kept()
    kept.gate = asyncio.Event()
    sink = Batching(kept, 10, 1, 0.0, concurrent=True)
    await sink.process([record("{1}"), record("{2}")])
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(sink._sending) == 2
    kept.gate.set()
    await sink.close()
    assert sorted(kept.batches) == [[b"{1}"], [b"{2}"]]


@pytest.mark.parametrize(
    ("moments", "waits"), [((0, 0, 0), (0, 0, 0.5)), ((0, 0, 1), (0, 0, 0)), ((0, 10, 10), (0, 0, 0))]
)
def test_throttle(moments, waits):
    now = [0.0]
    throttle = Throttle(2.0, 2, lambda: now[0])
    found = []
    for moment in moments:
        now[0] = float(moment)
        found.append(throttle.wait_seconds())
    assert found == list(waits)


async def test_a_buffer_whose_task_is_killed_goes_on() -> None:
    kept = Kept()
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001))
    sink = Batching(kept, 10, 1, 3600.0, supervisor=supervisor)
    await sink.process([record("{a}")])
    await asyncio.sleep(0)
    for task in asyncio.all_tasks():
        if task.get_name() == "audit buffer":
            task.cancel()
    await asyncio.sleep(0)
    await sink.process([record("{b}")])
    await sink.close()
    assert kept.batches == [[b"{a}"], [b"{b}"]]
    await supervisor.close()


async def test_a_batch_that_fails_is_lost_and_the_next_is_not() -> None:
    class Failing(Kept):
        async def process(self, records):
            if records[0].body == b"{bad}":
                raise RuntimeError("no")
            return await super().process(records)

    kept, lost = Failing(), []
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001))
    sink = Batching(kept, 10, 1, 3600.0, supervisor=supervisor, lose=lambda why, count: lost.append(count))
    await sink.process([record("{bad}"), record("{good}")])
    await sink.close()
    assert kept.batches == [[b"{good}"]]
    assert lost == [1]
    await supervisor.close()


async def test_a_buffer_is_bounded_by_bytes_with_what_is_on_its_way(monkeypatch):
    monkeypatch.setattr(sinks, "MOST_BYTES", 2_500)
    lost = []
    kept = Kept()
    kept.gate = asyncio.Event()
    sink = Batching(kept, 100, 1, 3600.0, concurrent=True, lose=lambda why, count: lost.append((why, count)))
    for _ in range(4):
        assert await sink.process([record("x" * 1_000)])
    assert lost == [("buffered", 1)] * 2
    kept.gate.set()
    await sink.close()
    assert len(kept.batches) == 2
