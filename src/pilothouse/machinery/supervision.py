"""Who starts a task owns it: a tree of supervisors, each the parent of what runs in the background.

``run``    work that must go on. However it ends (an exception, a return, a cancellation by somebody else) it is logged,
           counted and started again after a back-off; only its supervisor can end it.
``spawn``  work that ends by itself. A failure is logged and counted, and told to ``on_error``.
``close``  ends all of it, the newest first, and returns when it has ended; what fails meanwhile is logged and the rest
           is closed all the same. One after the other, unless nothing in it needs anything else in it to end:
           thousands of tasks would take as many turns of a loop that they keep busy meanwhile.

    starting ──► running ──settled──► running well (failures forgotten)
       ▲            │ ends
       └─ alarm ── backing off ──3rd failure in a row──► unhealthy until it has settled

A task that is cancelled from outside is dead and is replaced by a new one when its alarm rings; were it to go on by
itself, a loop that cancels all tasks in order to end would wait for ever. ``SystemExit`` and ``KeyboardInterrupt`` end
the program (the event loop raises them), so that nothing is started again after them.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pilothouse.machinery.alarms import Alarm, Delay, loop_delay
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.metrics import Counter, Gauge, Instrument

logger = logging.getLogger(__name__)
T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, None]]
OnError = Callable[[BaseException], None]
_MOST_NAMES: Final = 200
_OTHERS: Final = "other"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How long failed work waits (with up to ``jitter`` of that more), when it has come back, when it is unhealthy."""

    first_seconds: float = 0.1
    most_seconds: float = 30.0
    jitter: float = 0.2
    settle_seconds: float = 5.0
    unhealthy_after: int = 3


class SupervisionMetrics:
    """Counts by the name of the work; the names of a program are few, and any beyond that share one series."""

    def __init__(self) -> None:
        self._failures = Counter(
            "pilothouse_background_task_failures_total", "Failures of work in the background, by name.", ("task",)
        )
        self._restarts = Counter(
            "pilothouse_background_task_restarts_total", "Work in the background that was started again.", ("task",)
        )
        self._down = Gauge("pilothouse_background_tasks_unhealthy", "Work in the background that does not come back.")
        self._names: set[str] = set()

    def instruments(self) -> tuple[Instrument, ...]:
        """What ``/metrics`` shows."""
        return self._failures, self._restarts, self._down

    def count_failure(self, name: str) -> None:
        """One more failure."""
        self._failures.labelled(self._bounded(name)).value += 1

    def count_restart(self, name: str) -> None:
        """One more start after a failure."""
        self._restarts.labelled(self._bounded(name)).value += 1

    def add_unhealthy(self, change: int) -> None:
        """So many more do not come back, or do again."""
        self._down.labelled().value += change

    def _bounded(self, name: str) -> str:
        if name not in self._names and len(self._names) >= _MOST_NAMES:
            return _OTHERS
        self._names.add(name)
        return name


class Supervised:
    """Work that goes on until it is stopped. Made by ``Supervisor.run``."""

    def __init__(self, supervisor: Supervisor, name: str, work: Work) -> None:
        self.name = name
        self._supervisor, self._work = supervisor, work
        self._task: asyncio.Task[None] | None = None
        self._alarm: Alarm | None = None
        self._stopped = False
        self.failures = 0
        self.error = ""
        """Why it ended last; nothing once it runs well again."""
        self._start()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What runs just now, if anything does."""
        return self._task

    @property
    def is_running(self) -> bool:
        """Whether it runs just now, which is not the case while it backs off."""
        return self._task is not None

    @property
    def is_healthy(self) -> bool:
        """Whether it has not failed several times in a row without coming back since."""
        return self.failures < self._supervisor.policy.unhealthy_after

    def cancel(self) -> None:
        """End it for good, in the middle if need be, without waiting."""
        self._set_alarm(None)
        if not self._stopped and not self.is_healthy:
            self._supervisor.metrics.add_unhealthy(-1)
        self._stopped = True
        self._supervisor.forget(self)
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """End it for good and wait until it has ended."""
        task = self._task
        self.cancel()
        if task is not None:
            await _end(task)

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work(), name=self.name)
        self._task.add_done_callback(self._ended)
        if self.failures:
            self._set_alarm(self._supervisor.delay(self._supervisor.policy.settle_seconds, self._settled))

    def _set_alarm(self, alarm: Alarm | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = alarm

    def _settled(self) -> None:
        self._set_alarm(None)
        if not self.is_healthy:
            self._supervisor.metrics.add_unhealthy(-1)
        self.failures, self.error = 0, ""
        self._supervisor.backoff.forget(self)
        logger.info("%s: %s runs again", self._supervisor.name, self.name)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error: BaseException | None = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._stopped:
            if error is not None and not task.cancelled():
                self._supervisor.report(self.name, error, "failed while it was stopped")
            return
        self.failures += 1
        self.error = _describe(error)
        if self.failures == self._supervisor.policy.unhealthy_after:
            self._supervisor.metrics.add_unhealthy(1)
        seconds = self._supervisor.pause(self)
        self._supervisor.report(self.name, error, f"{self.error}; again in {seconds:.3f} s")
        ends_all = isinstance(error, KeyboardInterrupt | SystemExit)
        self._set_alarm(None if ends_all else self._supervisor.delay(seconds, self._restart))

    def _restart(self) -> None:
        self._supervisor.metrics.count_restart(self.name)
        self._start()


class Supervisor:
    """The parent of work in the background. Belongs to one event loop; nothing runs before something is started."""

    def __init__(
        self,
        name: str,
        *,
        policy: RestartPolicy | None = None,
        metrics: SupervisionMetrics | None = None,
        delay: Delay = loop_delay,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.policy = policy or RestartPolicy()
        self.metrics = metrics or SupervisionMetrics()
        self.delay = delay
        self.backoff: Backoff[Supervised] = Backoff(self.policy.first_seconds, self.policy.most_seconds)
        self._rng = rng
        self._owned: dict[Supervised | Supervisor | asyncio.Task[Any], None] = {}
        self._parent: Supervisor | None = None
        self._closed = False

    def child(self, name: str) -> Supervisor:
        """A supervisor that is closed with this one, counts into its metrics and shows its health in this one's."""
        self._check_open()
        child = Supervisor(
            f"{self.name}/{name}", policy=self.policy, metrics=self.metrics, delay=self.delay, rng=self._rng
        )
        child._parent = self
        self._owned[child] = None
        return child

    def run(self, name: str, work: Work) -> Supervised:
        """Start work that must go on for as long as this supervisor is open."""
        self._check_open()
        supervised = Supervised(self, name, work)
        self._owned[supervised] = None
        return supervised

    def spawn(self, name: str, work: Coroutine[Any, Any, T], on_error: OnError | None = None) -> asyncio.Task[T]:
        """Start work that ends by itself. A failure is logged and counted even if nobody awaits the task."""
        if self._closed:
            work.close()
        self._check_open()
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._owned[task] = None

        def ended(task: asyncio.Task[T]) -> None:
            self._owned.pop(task, None)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.report(name, error, "failed")
                if on_error is not None:
                    on_error(error)

        task.add_done_callback(ended)
        return task

    def unhealthy(self) -> dict[str, str]:
        """What does not come back here and in all children, by name, and why it ended last."""
        found: dict[str, str] = {}
        for owned in self._owned:
            if isinstance(owned, Supervisor):
                found |= owned.unhealthy()
            elif isinstance(owned, Supervised) and not owned.is_healthy:
                found[f"{self.name}/{owned.name}"] = owned.error
        return found

    async def close(self, *, at_once: bool = False) -> None:
        """End everything, the newest first, and wait until it has ended. Closing twice does nothing.

        With ``at_once`` all work of this supervisor is told to end before any of it is waited for.
        """
        self._closed = True
        if self._parent is not None:
            self._parent._owned.pop(self, None)
        try:
            if at_once and (ending := self._end_work()):
                await asyncio.wait(ending)
            while self._owned:
                owned, _ = self._owned.popitem()
                await _close_one(owned)
        finally:
            self._abandon()

    def _end_work(self) -> list[asyncio.Task[Any]]:
        ending: list[asyncio.Task[Any]] = []
        for owned in reversed([*self._owned]):
            if not isinstance(owned, Supervisor):
                task = owned.task if isinstance(owned, Supervised) else owned
                owned.cancel()
                if task is not None and task is not asyncio.current_task():
                    ending.append(task)
        return ending

    def _abandon(self) -> None:
        """End without waiting what is left where closing was itself cancelled; nothing else leaves any."""
        while self._owned:
            owned, _ = self._owned.popitem()
            if isinstance(owned, Supervisor):
                owned._closed = True
                owned._abandon()
            else:
                owned.cancel()

    def report(self, name: str, error: BaseException | None, what: str) -> None:
        """Log and count a failure, with its traceback if it has one."""
        self.metrics.count_failure(name)
        raised = error if error is not None and error.__traceback__ is not None else None
        logger.error("%s: %s %s", self.name, name, what, exc_info=raised)

    def pause(self, supervised: Supervised) -> float:
        """How long failed work waits this time."""
        return self.backoff.next(supervised) * (1.0 + self.policy.jitter * self._rng())

    def forget(self, supervised: Supervised) -> None:
        """Work that was stopped alone is nobody's business any more."""
        self._owned.pop(supervised, None)
        self.backoff.forget(supervised)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"supervisor {self.name} is closed")


async def _close_one(owned: Supervised | Supervisor | asyncio.Task[Any]) -> None:
    if isinstance(owned, Supervisor):
        await owned.close()
    elif isinstance(owned, Supervised):
        await owned.stop()
    else:
        await _end(owned)


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however it ends; its own callback reports how."""
    task.cancel()
    if task is not asyncio.current_task():
        await asyncio.wait([task])


def _describe(error: BaseException | None) -> str:
    if error is None:
        return "returned although it must go on"
    if isinstance(error, asyncio.CancelledError):
        return "was cancelled from outside"
    return f"failed: {type(error).__name__}: {error}"
