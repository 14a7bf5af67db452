"""What is counted about authorization: attempts, who decided, webhooks and their conditions, impersonation, reloads."""

from __future__ import annotations

from pilothouse.authn.metrics import ATTEMPT_BUCKETS
from pilothouse.machinery.metrics import Counter, Histogram, Instrument, Value, counted_durations
from pilothouse.machinery.reload_metrics import ReloadMetrics

_PREFIX = "apiserver_authorization"
_CONDITION_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)


class AuthorizationMetrics:
    """The instruments of one server."""

    def __init__(self, server: str = "") -> None:
        seconds = self._seconds = Histogram(
            "authorization_duration_seconds", "[ALPHA] Seconds to authorize.", ("result",), ATTEMPT_BUCKETS
        )
        self.results = {result: seconds.labelled(result) for result in ("allowed", "denied", "no-opinion", "error")}
        """To be told how long an attempt took."""
        self._attempts = counted_durations(
            "authorization_attempts_total", "[ALPHA] Attempts to authorize.", ("result",), seconds
        )
        self._decisions = Counter(
            f"{_PREFIX}_decisions_total", "[ALPHA] Decisions by authorizer.", ("type", "name", "decision")
        )
        self.webhooks = WebhookMetrics()
        self.impersonation = ImpersonationMetrics()
        self.reloads = ReloadMetrics("authorization", "authorization configuration", server)

    def decisions_of(self, kind: str, name: str, decision: str) -> Value:
        """To be counted up with every such decision of an authorizer."""
        return self._decisions.labelled(kind, name, decision)

    def instruments(self) -> list[Instrument]:
        """All of them."""
        parts = (self.webhooks, self.impersonation, self.reloads)
        own = (self._attempts, self._seconds, self._decisions)
        return [*own, *(each for part in parts for each in part.instruments())]


class WebhookMetrics:
    """Calls of authorization webhooks, and the conditions that keep them out."""

    def __init__(self) -> None:
        labels, named = ("name", "result"), ("type", "name")
        self._calls = Counter(f"{_PREFIX}_webhook_evaluations_total", "[ALPHA] Calls of webhooks.", labels)
        self._seconds = Histogram(f"{_PREFIX}_webhook_duration_seconds", "[ALPHA] Seconds a webhook takes.", labels)
        self._ignored = Counter(
            f"{_PREFIX}_webhook_evaluations_fail_open_total", "[ALPHA] Failed calls that decided nothing.", labels
        )
        conditions = f"{_PREFIX}_match_condition"
        self._failures = Counter(f"{conditions}_evaluation_errors_total", "[ALPHA] Conditions that failed.", named)
        self._exclusions = Counter(f"{conditions}_exclusions_total", "[ALPHA] Webhooks kept out.", named)
        self._evaluations = Histogram(
            f"{conditions}_evaluation_seconds", "[ALPHA] Seconds to evaluate conditions.", named, _CONDITION_BUCKETS
        )

    def called(self, name: str, result: str, seconds: float) -> None:
        """A call ended in ``success``, ``error``, ``timeout`` or ``canceled``."""
        self._calls.labelled(name, result).value += 1
        self._seconds.labelled(name, result).observe(seconds)

    def ignored(self, name: str, result: str) -> None:
        """A failed call left the decision to others."""
        self._ignored.labelled(name, result).value += 1

    def evaluated(self, name: str, seconds: float, *, excluded: bool = False, failed: bool = False) -> None:
        """Conditions were evaluated."""
        self._evaluations.labelled("Webhook", name).observe(seconds)
        if failed:
            self._failures.labelled("Webhook", name).value += 1
        elif excluded:
            self._exclusions.labelled("Webhook", name).value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._calls, self._seconds, self._ignored, self._failures, self._exclusions, self._evaluations


class ImpersonationMetrics:
    """Attempts to act as somebody else, and the checks they took."""

    def __init__(self) -> None:
        prefix, labels = "apiserver_impersonation", ("mode", "decision")
        self._attempts = Counter(f"{prefix}_attempts_total", "[ALPHA] Attempts to impersonate.", labels)
        self._seconds = Histogram(
            f"{prefix}_attempts_duration_seconds", "[ALPHA] Seconds to impersonate.", labels, ATTEMPT_BUCKETS
        )
        self._checks = Counter(f"{prefix}_authorization_attempts_total", "[ALPHA] Checks for impersonation.", labels)
        self._check_seconds = Histogram(
            f"{prefix}_authorization_attempts_duration_seconds",
            "[ALPHA] Seconds of checks for impersonation.",
            labels,
            ATTEMPT_BUCKETS,
        )

    def attempted(self, mode: str, decision: str, seconds: float) -> None:
        """An attempt was ``allowed`` in a mode, or ``denied`` in all."""
        self._attempts.labelled(mode, decision).value += 1
        self._seconds.labelled(mode, decision).observe(seconds)

    def checked(self, mode: str, decision: str, seconds: float) -> None:
        """The authorizer was asked for an attempt."""
        self._checks.labelled(mode, decision).value += 1
        self._check_seconds.labelled(mode, decision).observe(seconds)

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._attempts, self._seconds, self._checks, self._check_seconds
