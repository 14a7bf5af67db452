import asyncio
import logging
from collections.abc import Callable

import pytest

from pilothouse.machinery.metrics import render
from pilothouse.machinery.supervision import RestartPolicy, SupervisionMetrics, Supervisor
from pilothouse.testing.fake_time import FakeTime

POLICY = RestartPolicy(first_seconds=1.0, most_seconds=4.0, jitter=0.0, settle_seconds=10.0, unhealthy_after=3)


class Nasty(BaseException):
    """Neither an Exception nor one of those that end the program."""


class Patient:
    """Work that does as it is told, each time it is started."""

    def __init__(self) -> None:
        self.starts = 0
        self.order: asyncio.Queue[Callable[[], None]] = asyncio.Queue()

    async def work(self) -> None:
        self.starts += 1
        (await self.order.get())()

    def tell(self, order: Callable[[], None]) -> None:
        self.order.put_nowait(order)


def raising(error: BaseException) -> Callable[[], None]:
    def order() -> None:
        raise error

    return order


def supervisor(time: FakeTime, metrics: SupervisionMetrics | None = None) -> Supervisor:
    return Supervisor("test", policy=POLICY, metrics=metrics, delay=time.delay, rng=lambda: 0.5)


async def settle() -> None:
    """Let everything happen that can happen now."""
    for _ in range(10):
        await asyncio.sleep(0)


WAYS_TO_END = {
    "exception": (raising(ValueError("bad")), "failed: ValueError: bad"),
    "exception of a base kind": (raising(Nasty("worse")), "failed: Nasty: worse"),
    "a future it awaited was cancelled": (raising(asyncio.CancelledError()), "was cancelled from outside"),
    "return": (lambda: None, "returned although it must go on"),
}


@pytest.mark.parametrize("way", WAYS_TO_END)
async def test_work_that_ends_is_started_again(way: str, caplog: pytest.LogCaptureFixture) -> None:
    order, said = WAYS_TO_END[way]
    time, patient, metrics = FakeTime(), Patient(), SupervisionMetrics()
    parent = supervisor(time, metrics)
    work = parent.run("loop", patient.work)
    patient.tell(order)
    await settle()
    assert (patient.starts, work.is_running, work.failures) == (1, False, 1)
    assert f"test: loop {said}; again in 1.000 s" in caplog.text
    time.advance(1.0)
    await settle()
    assert (patient.starts, work.is_running) == (2, True)
    page = render(metrics.instruments()).decode()
    assert 'pilothouse_background_task_failures_total{task="loop"} 1\n' in page
    assert 'pilothouse_background_task_restarts_total{task="loop"} 1\n' in page
    await parent.close()
    assert not work.is_running


async def test_a_failure_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    parent, patient = supervisor(FakeTime()), Patient()
    parent.run("loop", patient.work)
    patient.tell(raising(ValueError("bad")))
    await settle()
    assert "Traceback" in caplog.text
    assert "test_supervision.py" in caplog.text
    await parent.close()


async def test_a_task_that_somebody_else_cancels_is_replaced() -> None:
    time, patient = FakeTime(), Patient()
    parent = supervisor(time)
    parent.run("victim", patient.work)
    await settle()
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "victim")
    task.cancel()
    await settle()
    assert task.cancelled()
    time.advance(1.0)
    await settle()
    assert patient.starts == 2
    await parent.close()


async def test_the_pause_doubles_up_to_its_limit_and_starts_again_after_work_has_settled() -> None:
    time, patient = FakeTime(), Patient()
    parent = supervisor(time)
    parent.run("loop", patient.work)
    for seconds in (1.0, 2.0, 4.0, 4.0):
        starts = patient.starts
        patient.tell(raising(ValueError()))
        await settle()
        time.advance(seconds - 0.001)
        await settle()
        assert patient.starts == max(starts, 1)
        time.advance(0.001)
        await settle()
        assert patient.starts == max(starts, 1) + 1
    time.advance(10.0)
    starts = patient.starts
    patient.tell(raising(ValueError()))
    await settle()
    time.advance(1.0)
    await settle()
    assert patient.starts == starts + 1
    await parent.close()


async def test_jitter_lengthens_the_pause() -> None:
    time, patient = FakeTime(), Patient()
    parent = Supervisor("test", policy=RestartPolicy(first_seconds=1.0, jitter=0.5), delay=time.delay, rng=lambda: 0.5)
    parent.run("loop", patient.work)
    patient.tell(lambda: None)
    await settle()
    assert [alarm.at for alarm in time.alarms if not alarm.cancelled] == [1.25]
    await parent.close()


async def test_work_turns_unhealthy_when_it_does_not_come_back_and_healthy_when_it_does() -> None:
    time, patient, metrics = FakeTime(), Patient(), SupervisionMetrics()
    parent = supervisor(time, metrics)
    child = parent.child("inner")
    child.run("loop", patient.work)
    for failure in range(1, 4):
        assert parent.unhealthy() == {}
        patient.tell(raising(ValueError(str(failure))))
        await settle()
        if failure < 3:
            time.advance(4.0)
            await settle()
    assert parent.unhealthy() == child.unhealthy() == {"test/inner/loop": "failed: ValueError: 3"}
    assert "pilothouse_background_tasks_unhealthy 1\n" in render(metrics.instruments()).decode()
    time.advance(4.0)
    await settle()
    assert parent.unhealthy(), "it runs, but has not run for long enough to be trusted"
    time.advance(10.0)
    assert parent.unhealthy() == {}
    assert "pilothouse_background_tasks_unhealthy 0\n" in render(metrics.instruments()).decode()
    await parent.close()


async def test_stopping_one_leaves_the_others() -> None:
    parent, first, second = supervisor(FakeTime()), Patient(), Patient()
    one, two = parent.run("one", first.work), parent.run("two", second.work)
    await settle()
    await one.stop()
    assert (one.is_running, two.is_running) == (False, True)
    await parent.close()


async def test_work_in_back_off_is_not_started_again_after_closing() -> None:
    time, patient = FakeTime(), Patient()
    parent = supervisor(time)
    parent.run("loop", patient.work)
    patient.tell(raising(ValueError()))
    await settle()
    await parent.close()
    time.advance(100.0)
    await settle()
    assert patient.starts == 1


async def test_closing_ends_everything_newest_first_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def work(name: str, error: BaseException | None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
            if error is not None:
                raise error

    parent = supervisor(FakeTime())
    parent.run("first", lambda: work("first", None))
    child = parent.child("child")
    child.run("second", lambda: work("second", ValueError("cannot end")))
    child.spawn("third", work("third", Nasty("cannot end either")))
    parent.spawn("fourth", work("fourth", None))
    await settle()
    await parent.close()
    assert ended == ["fourth", "third", "second", "first"]
    assert "second failed while it was stopped" in caplog.text
    assert "third failed" in caplog.text
    await parent.close()


async def test_closing_at_once_tells_all_before_it_waits_for_any() -> None:
    told: list[str] = []
    all_told = asyncio.Event()

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append(name)
            if len(told) == 3:
                all_told.set()
            await all_told.wait()

    parent = supervisor(FakeTime())
    parent.run("first", lambda: work("first"))
    parent.run("second", lambda: work("second"))
    parent.spawn("third", work("third"))
    await settle()
    await parent.close(at_once=True)
    assert told == ["third", "second", "first"]


async def test_closing_that_is_cancelled_ends_the_rest_all_the_same() -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await release.wait()

    patient = Patient()
    parent = supervisor(FakeTime())
    work = parent.child("inner").run("loop", patient.work)
    held = parent.spawn("stubborn", stubborn())
    await settle()
    closing = asyncio.ensure_future(parent.close())
    await settle()
    closing.cancel()
    await settle()
    assert not work.is_running
    release.set()
    await asyncio.wait([held])


async def test_nothing_starts_in_a_closed_supervisor() -> None:
    parent = supervisor(FakeTime())
    await parent.close()
    with pytest.raises(RuntimeError, match="test is closed"):
        parent.run("loop", Patient().work)
    with pytest.raises(RuntimeError, match="test is closed"):
        parent.spawn("once", Patient().work())
    with pytest.raises(RuntimeError, match="test is closed"):
        parent.child("inner")


async def test_a_one_shot_gives_its_result() -> None:
    async def answer() -> int:
        return 42

    parent = supervisor(FakeTime())
    assert await parent.spawn("once", answer()) == 42
    await parent.close()


async def test_a_failed_one_shot_is_logged_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    metrics, told = SupervisionMetrics(), []
    parent = supervisor(FakeTime(), metrics)
    patient = Patient()
    parent.spawn("once", patient.work(), on_error=told.append)
    error = ValueError("lost?")
    patient.tell(raising(error))
    await settle()
    assert told == [error]
    assert "test: once failed" in caplog.text
    assert "lost?" in caplog.text
    assert 'pilothouse_background_task_failures_total{task="once"} 1\n' in render(metrics.instruments()).decode()
    assert parent.unhealthy() == {}
    await parent.close()


async def test_a_cancelled_one_shot_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    parent = supervisor(FakeTime())
    task = parent.spawn("once", Patient().work())
    await settle()
    task.cancel()
    await settle()
    assert caplog.text == ""
    await parent.close()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_the_program_is_not_started_again(error: BaseException) -> None:
    time, patient = FakeTime(), Patient()

    async def main() -> None:
        supervisor(time).run("loop", patient.work)
        patient.tell(raising(error))
        await asyncio.Event().wait()

    with pytest.raises(type(error)):
        asyncio.run(main())
    assert [alarm for alarm in time.alarms if not alarm.cancelled] == []


def test_a_loop_that_ends_with_work_running_does_not_wait_for_it() -> None:
    async def main() -> None:
        Supervisor("test").run("loop", Patient().work)
        await settle()

    asyncio.run(main())


def test_names_beyond_the_limit_share_one_series() -> None:
    metrics = SupervisionMetrics()
    for number in range(300):
        metrics.count_failure(f"task-{number}")
    page = render(metrics.instruments()).decode()
    assert 'failures_total{task="other"} 100\n' in page
    assert page.count("failures_total{") == 201
