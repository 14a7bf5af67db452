import asyncio
import logging
import time

import pytest

from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.work_turns import PLACES, SECONDS
from pilothouse.testing.fake_clock import FakeClock


class Recorder:
    """Work that counts its calls, fails as often as told, and says when it was called so often."""

    def __init__(self, failures: int = 0, again: float | None = None) -> None:
        self.calls: list[str] = []
        self.failures, self.again = failures, again
        self._changed = asyncio.Event()

    async def reconcile(self, key: str) -> float | None:
        self.calls.append(key)
        self._changed.set()
        if len(self.calls) <= self.failures:
            raise RuntimeError("not yet")
        return self.again

    async def work(self) -> None:
        await self.reconcile("round")

    async def called(self, times: int) -> None:
        async with asyncio.timeout(120):
            while len(self.calls) < times:
                self._changed.clear()
                await self._changed.wait()


@pytest.mark.parametrize(
    ("error", "warned"),
    [(errors.conflict(GroupResource("", "nodes"), "a", "it changed"), []), (RuntimeError("odd"), ["WARNING"])],
)
async def test_a_lost_race_is_no_warning(error: Exception, warned: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def fail(key: str) -> None:
        raise error

    controller = Controller("test", fail)
    with caplog.at_level(logging.INFO):
        await controller.reconcile("a")
    assert [record.levelname for record in caplog.records] == warned
    assert controller.queue.num_requeues("a") == 1


class Event(asyncio.Event):
    """Something that syncs when it is set."""

    async def wait_synced(self) -> None:
        await self.wait()


async def test_a_controller_reconciles_what_is_added(supervisor: Supervisor) -> None:
    recorder = Recorder()
    controller = Controller("test", recorder.reconcile)
    controller.queue.add("before")
    controller.start(supervisor)
    controller.queue.add("after")
    await recorder.called(2)
    assert recorder.calls == ["before", "after"]


async def test_keys_that_need_no_waiting_are_worked_on_in_turns_with_others(supervisor: Supervisor) -> None:
    done: list[int] = []

    async def reconcile(key: int) -> None:
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass
        done.append(key)

    controller = Controller("test", reconcile)
    for key in range(100):
        controller.queue.add(key)
    controller.start(supervisor)
    seen: set[int] = set()
    async with asyncio.timeout(120):
        while len(done) < 100:
            await asyncio.sleep(0)
            seen.add(len(done))
    assert len(seen) > 5


async def test_a_failing_key_is_tried_again(supervisor: Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(failures=2)
    controller = Controller("test", recorder.reconcile)
    controller.queue.add("a")
    controller.start(supervisor)
    await recorder.called(3)
    assert recorder.calls == ["a", "a", "a"]
    assert "test: a failed" in caplog.text


async def test_a_key_can_be_asked_for_again_later(supervisor: Supervisor) -> None:
    clock, recorder = FakeClock(), Recorder(again=60.0)
    controller = Controller("test", recorder.reconcile, clock=clock)
    controller.queue.add("a")
    controller.start(supervisor)
    await recorder.called(1)
    await clock.until_waiting()
    assert clock.waiting == [60.0]
    clock.advance(60)
    await recorder.called(2)


async def test_a_controller_waits_for_its_informers(supervisor: Supervisor) -> None:
    recorder, synced = Recorder(), Event()
    controller = Controller("test", recorder.reconcile, wait_for=[synced])
    controller.queue.add("a")
    controller.start(supervisor)
    await asyncio.sleep(0)
    assert recorder.calls == []
    synced.set()
    await recorder.called(1)


async def test_a_worker_that_is_killed_gives_its_key_back(supervisor: Supervisor) -> None:
    begun, hold = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def reconcile(key: str) -> None:
        begun.set()
        await hold.wait()
        done.append(key)

    controller = Controller("test", reconcile)
    controller.queue.add("a")
    controller.start(supervisor)
    await begun.wait()
    begun.clear()
    for task in asyncio.all_tasks():
        if task.get_name() == "test":
            task.cancel()
    hold.set()
    async with asyncio.timeout(120):
        while not done:
            await asyncio.sleep(0.001)
    assert done == ["a"]


async def test_stopping_cancels_work_under_way(supervisor: Supervisor) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless(key: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    controller = Controller("test", endless, workers=2)
    controller.queue.add("a")
    controller.start(supervisor)
    await begun.wait()
    await controller.stop()
    assert ended.is_set()


async def test_rounds_come_by_the_clock_whether_they_fail_or_not(
    supervisor: Supervisor, caplog: pytest.LogCaptureFixture
) -> None:
    clock, recorder, ready = FakeClock(), Recorder(failures=1), asyncio.Event()
    periodic = Periodic("test", recorder.work, 10.0, wait_for=ready, clock=clock, rng=lambda: 0.5)
    periodic.start(supervisor)
    await asyncio.sleep(0)
    assert recorder.calls == []
    ready.set()
    await recorder.called(1)
    await clock.until_waiting()
    assert clock.waiting == [10.2]
    assert "test: not yet" in caplog.text
    clock.advance(10.2)
    await recorder.called(2)
    await periodic.stop()


async def test_the_first_round_can_wait(supervisor: Supervisor) -> None:
    clock, recorder = FakeClock(), Recorder()
    Periodic("test", recorder.work, 10.0, at_once=False, jitter=0, clock=clock).start(supervisor)
    await clock.until_waiting()
    assert recorder.calls == []
    clock.advance(10)
    await recorder.called(1)


async def test_many_controllers_share_the_turns_of_a_loop(supervisor: Supervisor) -> None:
    """However many have keys that need no waiting, a turn has few places."""
    done = 0

    async def reconcile(key: str) -> None:
        nonlocal done
        done += 1
        began = time.thread_time()
        while time.thread_time() - began < 2 * SECONDS:
            pass

    controllers = [Controller[str](f"c{number}", reconcile) for number in range(4 * PLACES)]
    for controller in controllers:
        for key in "abc":
            controller.queue.add(key)
        controller.start(supervisor)
    most = before = 0
    while done < 3 * len(controllers):
        await asyncio.sleep(0)
        most, before = max(most, done - before), done
    assert most <= PLACES


async def test_one_worker_is_left_to_other_namespaces(supervisor: Supervisor) -> None:
    """However long whatever one namespace has to do takes."""
    begun: list[tuple[str, str]] = []
    done, held = asyncio.Event(), asyncio.Event()

    async def reconcile(key: tuple[str, str]) -> None:
        begun.append(key)
        if key[0] == "many":
            await held.wait()
        done.set()

    controller: Controller[tuple[str, str]] = Controller("test", reconcile, workers=3)
    for number in range(10):
        controller.queue.add(("many", str(number)))
    controller.start(supervisor)
    async with asyncio.timeout(120):
        while len(begun) < 2:
            await asyncio.sleep(0)
        controller.queue.add(("few", "a"))
        await done.wait()
    assert begun == [("many", "0"), ("many", "1"), ("few", "a")]
