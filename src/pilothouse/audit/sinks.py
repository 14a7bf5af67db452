"""Where audit events go, and what stands in between: joining, truncating, batching, forgiving.

A sink takes records and says whether they are safe. The order from outside in is kube-apiserver's:

    joined → truncating → batching, or forgiving, or neither → log file or webhook
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pilothouse.audit.events import Record
from pilothouse.machinery.supervision import Supervised, Supervisor

logger = logging.getLogger(__name__)


MOST_BYTES: Final = 128 * 1024 * 1024
Lose = Callable[[str, int], object]
"""Is told which plug-in lost how many events."""


def lose_silently(plugin: str, count: int) -> None:
    """For those who do not count."""


class Sink(Protocol):
    """Keeps records."""

    async def process(self, records: Sequence[Record]) -> bool:
        """Keep them; False if some could not be kept."""
        ...

    async def close(self) -> None:
        """Finish what was begun and let go."""
        ...


class Joined:
    """Gives every record to several sinks."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)

    async def process(self, records: Sequence[Record]) -> bool:
        """True if all of them could."""
        done = True
        for sink in self._sinks:
            done = await sink.process(records) and done
        return done

    async def close(self) -> None:
        """Close them all."""
        for sink in self._sinks:
            await sink.close()


class Forgiving:
    """Waits for the sink but never fails a request because of it."""

    def __init__(self, inner: Sink) -> None:
        self._inner = inner

    async def process(self, records: Sequence[Record]) -> bool:
        """True."""
        await self._inner.process(records)
        return True

    async def close(self) -> None:
        """Close the sink."""
        await self._inner.close()


class Truncating:
    """Drops the objects of events that are too large, and keeps batches below a size."""

    def __init__(self, inner: Sink, max_event: int, max_batch: int, lose: Lose = lose_silently) -> None:
        self._inner, self._max_event, self._max_batch, self._lose = inner, max_event, max_batch, lose

    async def process(self, records: Sequence[Record]) -> bool:
        """Hand the records on, shortened and divided where need be."""
        done = True
        batch: list[Record] = []
        total = 0
        for record in records:
            fitting = self._fit(record)
            if fitting is None:
                logger.error("an audit event is left out: event is too large even after truncating")
                self._lose("truncate", 1)
                continue
            if batch and total + fitting.size > self._max_batch:
                done = await self._inner.process(batch) and done
                batch, total = [], 0
            batch.append(fitting)
            total += fitting.size
        if batch:
            done = await self._inner.process(batch) and done
        return done

    def _fit(self, record: Record) -> Record | None:
        if record.size <= self._max_event:
            return record
        short = record.shortened()
        return short if short is not None and short.size <= self._max_event else None

    async def close(self) -> None:
        """Close the sink."""
        await self._inner.close()


class Throttle:
    """A token bucket: ``burst`` at once, ``rate`` a second on average."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._seen = float(burst), clock()

    def wait_seconds(self) -> float:
        """Take a token; the seconds until it may be used."""
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._seen) * self._rate)
        self._seen = now
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate


class Batching:
    """Takes records at once and gives them on in batches. What does not fit into the buffer is lost, and said so.

    The buffer is bounded by bytes too, with what is on its way: ten thousand events may be ten gigabytes of objects,
    and whoever should take them may be gone.
    """

    def __init__(
        self,
        inner: Sink,
        buffer_size: int,
        max_size: int,
        max_wait: float,
        throttle: Throttle | None = None,
        *,
        concurrent: bool = False,
        lose: Lose = lose_silently,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._supervisor = supervisor or Supervisor("audit")
        self._inner, self._buffer_size, self._max_size, self._max_wait = inner, buffer_size, max_size, max_wait
        self._throttle, self._concurrent = throttle, concurrent
        self._buffer: deque[Record] = deque()
        self._held = 0
        """Bytes of all records that were taken and are not out yet."""
        self._filled, self._full, self._done = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._closing = False
        self._worker: Supervised | None = None
        self._sending: set[asyncio.Task[bool]] = set()
        self._lose = lose
        self.lost = 0

    async def process(self, records: Sequence[Record]) -> bool:
        """Take them; never fails."""
        if self._worker is None and not self._closing:
            self._worker = self._supervisor.run("audit buffer", self._work)
        for number, record in enumerate(records):
            is_full = len(self._buffer) >= self._buffer_size or (self._held and self._held + record.size > MOST_BYTES)
            if is_full or self._closing:
                self.lost += len(records) - number
                self._lose("buffered", len(records) - number)
                logger.error("%d audit events are lost: audit buffer queue blocked", len(records) - number)
                return True
            self._buffer.append(record)
            self._held += record.size
        self._filled.set()
        if len(self._buffer) >= self._max_size:
            self._full.set()
        return True

    async def _work(self) -> None:
        """Send batches until nothing is left when closing has begun; then wait to be stopped."""
        while self._buffer or not self._closing:
            if not self._buffer:
                self._filled.clear()
                await self._filled.wait()
                continue
            if self._max_size > 1 and len(self._buffer) < self._max_size and not self._closing:
                self._full.clear()
                await self._wait_full()
            await self._send([self._buffer.popleft() for _ in range(min(len(self._buffer), self._max_size))])
        self._done.set()
        await asyncio.Event().wait()

    async def _wait_full(self) -> None:
        try:
            async with asyncio.timeout(self._max_wait):
                await self._full.wait()
        except TimeoutError:
            pass

    async def _send(self, batch: list[Record]) -> None:
        if self._throttle is not None and not self._closing:
            await asyncio.sleep(self._throttle.wait_seconds())
        if not self._concurrent:
            try:
                await self._inner.process(batch)
            except BaseException:
                self._lost(batch)
                raise
            finally:
                self._let_go(batch)
            return
        task = self._supervisor.spawn("audit batch", self._inner.process(batch), lambda error: self._lost(batch))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        task.add_done_callback(lambda _: self._let_go(batch))

    def _let_go(self, batch: list[Record]) -> None:
        self._held -= sum(record.size for record in batch)

    def _lost(self, batch: list[Record]) -> None:
        self.lost += len(batch)
        self._lose("buffered", len(batch))

    async def close(self) -> None:
        """Send what is left, then close the sink."""
        self._closing = True
        self._filled.set()
        self._full.set()
        if self._worker is not None:
            await self._done.wait()
            await self._worker.stop()
        await asyncio.gather(*self._sending, return_exceptions=True)
        await self._inner.close()
