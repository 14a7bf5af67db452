"""The thread that does all writing of this process, and the only source of its live events.

Two who fight for the interpreter's lock wake each other up all the time (measured: a third of a create's cost). So the
thread is given one thing at a time, and what comes meanwhile waits for its end on the event loop: the writes of that
time are one transaction then. Only where the last write was alone until it was done, as those of a single client are,
the next one goes at once and not at the end of the loop's turn. And the loop, which has the lock, decides what a batch
amounts to and makes the statement; the thread executes it, without the lock, and hands the end back in one call.

What is written, and what is known of the store, is `known_log.py`. Rows that other processes wrote are found when a
batch meets an unexpected revision, or when the beacon shows one. Whatever fails, the thread lives on.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.backends.sqlite.clock import StoreClock
from pilothouse.storage.backends.sqlite.committer import MOST_BYTES, PATIENCE_SECONDS, Committer
from pilothouse.storage.backends.sqlite.known_log import Batch, KnownLog, Outcome
from pilothouse.storage.backends.sqlite.threads import join, reject, resolve
from pilothouse.storage.backends.sqlite.writing import MAX_BATCH, Plan, QueuedWrite

# A long turn hands over its first part, so that committing it overlaps with making the next.
_MAX_GATHERED = 32


@dataclass(slots=True, eq=False)
class Task:
    """Something else to do on the writer's thread and connection, between two batches."""

    action: Callable[[sqlite3.Connection], object]
    result: asyncio.Future[Any]


class Writer:
    """See the module's docstring. `deliver` is called on the loop with the outcome of each batch."""

    def __init__(
        self,
        path: str,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Outcome], None],
        clock: StoreClock,
        poll_seconds: float,
    ) -> None:
        self.loop, self._deliver, self._poll = loop, deliver, poll_seconds
        self.log = KnownLog(path, clock, partial(self._post, deliver))
        self._queue: SimpleQueue[Batch | Task | None] = SimpleQueue()
        self._is_busy = False
        """Whether the thread has something to do."""
        self._waiting: deque[list[QueuedWrite] | Task | None] = deque()
        """What it is to do next, in its order; writes that come one after the other together."""
        self._is_due = False
        """Whether the next is handed over at the end of this turn."""
        self._under_way = 0
        self._is_lone = False
        """Whether the last write was alone from its beginning to its end."""
        self._thread = threading.Thread(target=self._run, name="pilothouse-sqlite-writer", daemon=True)
        self._ready: asyncio.Future[int] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._committer = Committer(path, loop, self._committed)
        self._committing: Batch | None = None
        """What the other process has been given."""
        self._observed: Batch | None = None
        self._observed_since = 0.0

    async def start(self) -> int:
        """Open the database; returns its revision. Raises UnusableStore, Unavailable."""
        self._thread.start()
        try:
            return await self._ready
        except StorageError:
            await join(self._thread)
            raise

    async def stop(self) -> None:
        """Finish all that was asked for and close the database."""
        self._waiting.append(None)
        self._hand_over()
        await self._stopped
        await join(self._thread)

    def write(self, write: QueuedWrite) -> None:
        """Commit this soon, with the other writes of this turn of the loop; its result tells when."""
        self._under_way += 1
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, list) and len(last) < MAX_BATCH:
            last.append(write)
        else:
            last = [write]
            self._waiting.append(last)
        if self._is_busy:
            return
        if (self._is_lone and self._under_way == 1) or len(last) >= _MAX_GATHERED:
            self._hand_over()
        else:
            self._hand_over_soon()

    def perform(self, task: Task) -> None:
        """Do this after all that was asked before."""
        self._waiting.append(task)
        self._hand_over()

    def _hand_over_soon(self) -> None:
        """At the end of this turn, together with what it still brings."""
        if not self._is_due:
            self._is_due = True
            self.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the thread what is to be done next, unless it has something to do."""
        self._is_due = False
        if self._waiting and not self._is_busy:
            item = self._waiting.popleft()
            if isinstance(item, list):
                self._have_committed(self.log.plan(item))
            else:
                if item is None:
                    self._committer.close()
                self._queue.put(item)
            self._is_busy = True

    def _have_committed(self, batch: Batch) -> None:
        """By the process beside us, if there is one and the batch is short, or else by the thread."""
        committer, statement = self._committer, batch.statement
        if committer.is_ready and statement is not None and batch.size <= MOST_BYTES and committer.send(statement):
            self._committing = batch
        else:
            self._queue.put(batch)

    def _committed(self, is_written: bool | None) -> None:
        """The process beside us has written what it was given, or not, or may have; called on the loop."""
        batch, self._committing = self._committing, None
        assert batch is not None
        assert batch.plan is not None
        if is_written:
            plan = batch.plan
            if self.log.checkpoints.wrote(len(plan.events), batch.size):
                self._waiting.appendleft(self._task(self._keep_up))
            self._finish(plan, len(batch.writes))
        else:
            batch.is_doubtful = is_written is None
            self._queue.put(batch)

    def _task(self, action: Callable[[sqlite3.Connection], object]) -> Task:
        """Something that nobody waits for."""
        return Task(action, self.loop.create_future())

    def _keep_up(self, _: sqlite3.Connection) -> None:
        self.log.checkpoints.keep_up()

    def _start_committer(self, _: sqlite3.Connection) -> None:
        self._post(self._committer.connect, self._committer.start())

    def _run(self) -> None:
        try:
            self.log.open()
        except BaseException as error:
            self._post(reject, self._ready, error)
            return
        self._post(resolve, self._ready, self.log.seen)
        running = True
        while running:
            running = self._turn()
        self._committer.wait()
        self.log.close()
        self._post(resolve, self._stopped, None)

    def _turn(self) -> bool:
        """Wait for work and do it; False when the writer is to stop."""
        try:
            item = self._queue.get(timeout=self._poll)
        except Empty:
            self._look_after_committer()
            if self.log.has_foreign():
                self._post(self._catch_up)
            return True
        if isinstance(item, Batch):
            self._commit(item)
        elif item is not None:
            self._execute(item)
        return item is not None

    def _catch_up(self) -> None:
        """Other processes have written; called on the loop."""
        if not self._waiting and not self._is_busy:
            self.perform(self._task(self._look_around))

    def _look_after_committer(self) -> None:
        """End the process beside us when it is silent for too long: what it was given comes to us then."""
        now = time.monotonic()
        if self._committing is None or self._committing is not self._observed:
            self._observed, self._observed_since = self._committing, now
        elif now - self._observed_since > PATIENCE_SECONDS:
            self._committer.kill()

    def _look_around(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):  # it is looked for again
            self.log.synchronise(connection)

    def _commit(self, batch: Batch) -> None:
        if batch.is_doubtful:
            self._committer.wait()
        plan, checkpoints = self.log.commit(batch), self.log.checkpoints
        is_due = bool(plan.events) and checkpoints.wrote(len(plan.events), batch.size)
        self._post(self._finish, plan, len(batch.writes))
        if is_due:
            checkpoints.keep_up()

    def _finish(self, plan: Plan, count: int) -> None:
        """Writes are done; called on the loop."""
        self.log.settle(plan)
        self._is_busy = False
        self._under_way -= count
        self._is_lone = count == 1 and not self._under_way
        if self._committer.is_worth_it():
            self._waiting.append(self._task(self._start_committer))
        if self._waiting:
            self._hand_over_soon()
        self._deliver(Outcome(plan.revision, plan.events, plan.results))

    def _execute(self, task: Task) -> None:
        try:
            result = task.action(self.log.connection)
        except StorageError as error:
            self._post(self._performed, reject, task.result, error)
        except Exception as error:
            self.log.abandon()
            self._post(self._performed, reject, task.result, self.log.problem("used", error))
        else:
            self._post(self._performed, resolve, task.result, result)
        self.log.checkpoints.look()

    def _performed(
        self, tell: Callable[[asyncio.Future[Any], Any], None], future: asyncio.Future[Any], what: Any
    ) -> None:
        """A task is done; called on the loop."""
        self._is_busy = False
        tell(future, what)
        self._hand_over()

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        # Without a loop there is nobody left who could want to know.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)
