"""What stands before a sink: a buffer that sends batches, or the promise that a failure does not fail the request, and
the shortening of what is too large."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pilothouse.audit.sinks import Batching, Forgiving, Lose, Sink, Throttle, Truncating
from pilothouse.machinery.supervision import Supervisor


@dataclass(frozen=True, slots=True)
class Buffering:
    """How events reach a sink. A rate or a size of None is no limit."""

    mode: str
    buffer_size: int
    batch_size: int
    batch_seconds: float
    throttle: tuple[float, int] | None = None
    """Batches a second on average, and at once at most."""
    truncation: tuple[int, int] | None = None
    """The most bytes of an event and of a batch."""


def buffer(sink: Sink, by: Buffering, lose: Lose, supervisor: Supervisor, *, concurrent: bool = False) -> Sink:
    """The sink behind its buffer; ``concurrent`` sends batches side by side."""
    if by.mode == "batch":
        throttle = None if by.throttle is None else Throttle(*by.throttle, time.monotonic)
        sink = Batching(
            sink,
            by.buffer_size,
            by.batch_size,
            by.batch_seconds,
            throttle,
            concurrent=concurrent,
            lose=lose,
            supervisor=supervisor,
        )
    elif by.mode == "blocking":
        sink = Forgiving(sink)
    return sink if by.truncation is None else Truncating(sink, *by.truncation, lose)
