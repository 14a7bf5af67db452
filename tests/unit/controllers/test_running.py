import asyncio

import pytest

from pilothouse.controllers.running import Background, Controller, Periodic


class Recorder:
    """Work that counts its calls, fails as often as told, and says when it was called so often."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[str] = []
        self.failures = failures
        self._changed = asyncio.Event()

    async def reconcile(self, key: str) -> None:
        self.calls.append(key)
        self._changed.set()
        if len(self.calls) <= self.failures:
            raise RuntimeError("not yet")

    async def work(self) -> None:
        await self.reconcile("round")

    async def called(self, times: int) -> None:
        async with asyncio.timeout(10):
            while len(self.calls) < times:
                self._changed.clear()
                await self._changed.wait()


async def test_a_controller_reconciles_what_is_added() -> None:
    recorder = Recorder()
    controller = Controller("test", recorder.reconcile)
    controller.queue.add("before")
    controller.start()
    controller.queue.add("after")
    await recorder.called(2)
    await controller.stop()
    assert recorder.calls == ["before", "after"]


async def test_a_failing_key_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(failures=2)
    controller = Controller("test", recorder.reconcile)
    controller.queue.add("a")
    controller.start()
    await recorder.called(3)
    await controller.stop()
    assert recorder.calls == ["a", "a", "a"]
    assert "test: a failed" in caplog.text


async def test_a_controller_waits_for_its_event() -> None:
    recorder, ready = Recorder(), asyncio.Event()
    controller = Controller("test", recorder.reconcile, wait_for=ready)
    controller.queue.add("a")
    controller.start()
    await asyncio.sleep(0)
    assert recorder.calls == []
    ready.set()
    await recorder.called(1)
    await controller.stop()


async def test_stopping_cancels_work_under_way() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(key: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    controller = Controller("test", endless)
    controller.queue.add("a")
    controller.start()
    await begun.wait()
    await controller.stop()
    assert ended.is_set()


class FakeSleep:
    """Lets each pause end when told to, and remembers how long it was to be."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._end = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self._end.acquire()

    def end_pause(self) -> None:
        self._end.release()


async def test_rounds_are_repeated_with_jitter_whatever_they_end_with() -> None:
    recorder, sleep = Recorder(failures=1), FakeSleep()
    chances = iter((0.0, 0.5, 1.0, 0.0))
    periodic = Periodic("test", recorder.work, 10.0, jitter=0.1, sleep=sleep, rng=lambda: next(chances))
    periodic.start()
    for round_number in (1, 2, 3):
        await recorder.called(round_number)
        sleep.end_pause()
    await recorder.called(4)
    await periodic.stop()
    assert sleep.pauses[:3] == [10.0, 10.5, 11.0]


async def test_the_first_round_may_come_after_the_first_pause_or_an_event() -> None:
    recorder, sleep, ready = Recorder(), FakeSleep(), asyncio.Event()
    periodic = Periodic("test", recorder.work, 10.0, sleep=sleep, wait_for=ready)
    periodic.start(at_once=False)
    await asyncio.sleep(0)
    assert sleep.pauses == []
    ready.set()
    sleep.end_pause()
    await recorder.called(1)
    assert len(sleep.pauses) >= 1
    await periodic.stop()


async def test_what_runs_behind_a_server_is_stopped_once_and_the_newest_first() -> None:
    order = []

    class Thing:
        def __init__(self, name: str) -> None:
            self.name = name

        async def stop(self) -> None:
            order.append(self.name)

    background = Background()
    background.add(Thing("a"), Thing("b"))
    background.add(Thing("c"))
    await background.stop()
    await background.stop()
    assert order == ["c", "b", "a"]
