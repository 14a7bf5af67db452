"""What is counted about one call of a webhook."""

from __future__ import annotations

import time

from pilothouse.admission.metrics import CALL_FAILED, NO_ERROR, OWN_ERROR, VALIDATING, WebhookMetrics
from pilothouse.admission.webhooks.failures import CallFailed, Rejection
from pilothouse.admission.webhooks.hooks import Hook
from pilothouse.machinery import errors


class CallAccount:
    """One call, from when this is made until it is told how the call ended."""

    __slots__ = ("_hook", "_labels", "_metrics", "_started", "_times")

    def __init__(
        self, metrics: WebhookMetrics, hook: Hook, phase: str, operation: str, times: dict[str, float] | None = None
    ) -> None:
        self._metrics, self._hook = metrics, hook
        self._labels = (hook.name, phase, operation)
        self._times = times
        self._started = time.perf_counter()

    def answered(self) -> None:
        """The webhook agreed."""
        self._end(200, rejected=False)

    def refused(self, refusal: errors.StatusError) -> None:
        """The webhook said no, or something of ours went wrong."""
        own = not isinstance(refusal, Rejection)
        code = 0 if own else refusal.code
        self._metrics.refused(*self._labels, OWN_ERROR if own else NO_ERROR, code)
        self._end(code, rejected=True)

    def failed(self, failure: CallFailed) -> None:
        """No usable answer came."""
        self._metrics.failed(str(failure))
        if self._hook.ignores_failure:
            self._metrics.ignored(*self._labels[:2])
        else:
            self._metrics.refused(*self._labels, CALL_FAILED, failure.code)
        self._end(failure.code, rejected=not self._hook.ignores_failure)

    def _end(self, code: int, *, rejected: bool) -> None:
        seconds = time.perf_counter() - self._started
        self._metrics.called(*self._labels, seconds, code, rejected=rejected)
        times = self._times
        if times is None:
            return
        # Validating webhooks are asked at the same time, mutating ones one after another.
        if self._labels[1] == VALIDATING:
            times["validating-webhook"] = max(times.get("validating-webhook", 0.0), seconds)
        else:
            times["mutating-webhook"] = times.get("mutating-webhook", 0.0) + seconds
