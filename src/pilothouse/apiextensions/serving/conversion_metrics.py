"""What is counted about conversions by webhooks."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.metrics import Histogram, Instrument, counted_durations, doubling_buckets

CALL: Final = "conversion_webhook_call_failure"
MALFORMED: Final = "conversion_webhook_malformed_response_failure"
PARTIAL: Final = "conversion_webhook_partial_response_failure"
INVALID: Final = "conversion_webhook_invalid_converted_object_failure"
_LABELS: Final = ("result", "failure_type")
_BUCKETS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)


class ConversionMetrics:
    """The families."""

    def __init__(self) -> None:
        self._calls = Histogram(
            "apiserver_conversion_webhook_duration_seconds",
            "[ALPHA] Seconds that conversion webhooks took.",
            _LABELS,
            _BUCKETS,
        )
        self._definitions = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "[ALPHA] Seconds that conversions by webhook took, by definition.",
            ("crd_name", "from_version", "to_version", "succeeded"),
            doubling_buckets(0.001, 15),
        )

    def observe(self, crd: str, before: str, after: str, seconds: float, failure: str) -> None:
        """A webhook was asked; ``failure`` says what went wrong, if something did."""
        self._calls.labelled("failure" if failure else "success", failure).observe(seconds)
        self._definitions.labelled(crd, before, after, "false" if failure else "true").observe(seconds)

    def instruments(self) -> list[Instrument]:
        """All of them."""
        total = counted_durations(
            "apiserver_conversion_webhook_request_total", "[ALPHA] Calls of conversion webhooks.", _LABELS, self._calls
        )
        return [self._calls, self._definitions, total]
