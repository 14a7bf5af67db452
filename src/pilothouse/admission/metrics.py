"""What is counted about admission: phases, plug-ins, webhooks, match conditions and policies.

Plug-ins are timed on every write, so their series are looked up once for each kind of request and kept (see ``chain``).
Everything else happens beside a call or an evaluation, which cost far more than a look-up.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, Protocol
from weakref import WeakSet

from pilothouse.admission.pod_security.metrics import PodSecurityMetrics
from pilothouse.machinery.metrics import Counter, Gauge, Histogram, Instrument, Refreshed
from pilothouse.machinery.observations import Observations

ADMIT: Final = "admit"
VALIDATE: Final = "validate"
VALIDATING: Final = "validating"
"""What kube-apiserver calls the phase where webhooks are concerned."""
CALL_FAILED: Final = "calling_webhook_error"
OWN_ERROR: Final = "apiserver_internal_error"
NO_ERROR: Final = "no_error"
_PREFIX: Final = "apiserver_admission"
_PHASE: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
_WEBHOOK: Final = (*_PHASE, 10.0, 25.0)
_CONDITION: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_POLICY: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_LARGEST_CODE: Final = 600
_TOO_WEAK: Final = "digest algorithm too weak"
_NAMELESS: Final = "certificate relies on legacy Common Name field"


class Counting(Protocol):
    """Counts for itself what is shown only when somebody looks."""

    def fold(self) -> None:
        """Note in the series what was counted since the last time."""
        ...


class AdmissionMetrics:
    """The instruments of one server."""

    def __init__(self) -> None:
        phase = ("type", "operation", "rejected")
        self._phases = Histogram(
            f"{_PREFIX}_step_admission_duration_seconds", "[STABLE] Seconds of a phase of admission.", phase, _PHASE
        )
        self._plugins = Histogram(
            f"{_PREFIX}_controller_admission_duration_seconds",
            "[STABLE] Seconds of an admission plug-in.",
            ("name", *phase),
            _PHASE,
        )
        self._counting: WeakSet[Counting] = WeakSet()
        self.webhooks = WebhookMetrics()
        self.conditions = ConditionMetrics()
        self.manifests = ManifestMetrics()
        self.pod_security = PodSecurityMetrics()
        self.validations = PolicyMetrics("validating", "[BETA]", ("enforcement_action",))
        self.mutations = PolicyMetrics("mutating", "[ALPHA]")

    def fold_with(self, counting: Counting) -> None:
        """Have somebody bring the series of plug-ins up to date before they are shown, for as long as he exists."""
        self._counting.add(counting)

    def fold(self) -> None:
        """Bring the series of plug-ins up to date."""
        for counting in list(self._counting):
            counting.fold()

    def phase(self, phase: str, operation: str, *, rejected: bool) -> Observations:
        """The series of a phase."""
        return self._phases.labelled(phase, operation, _boolean(rejected))

    def plugin(self, name: str, phase: str, operation: str, *, rejected: bool) -> Observations:
        """The series of a plug-in in a phase."""
        self.fold()
        return self._plugins.labelled(name, phase, operation, _boolean(rejected))

    def instruments(self) -> list[Instrument]:
        """All of them."""
        summary = _Summary(f"{_PREFIX}_step_admission_duration_seconds", self._phases)
        parts = (self.webhooks, self.conditions, self.manifests, self.pod_security, self.validations, self.mutations)
        plugins = Refreshed(self._plugins, self.fold)
        return [self._phases, summary, plugins, *(each for part in parts for each in part.instruments())]


class _Summary:
    """The sums and counts of a histogram once more, as a family of their own; kube-apiserver keeps no quantiles."""

    def __init__(self, name: str, histogram: Histogram) -> None:
        self.name, self._source, self._histogram = f"{name}_summary", name, histogram
        self.stability = "ALPHA"

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        shown = [
            line.replace(self._source, self.name, 1)
            for line in self._histogram.lines()
            if line.startswith((f"{self._source}_sum", f"{self._source}_count"))
        ]
        if shown:
            yield f"# HELP {self.name} [ALPHA] Seconds of a phase of admission."
            yield f"# TYPE {self.name} summary"
            yield from shown


class ManifestMetrics:
    """Manifests that plug-ins read from files."""

    def __init__(self) -> None:
        prefix, labels = "apiserver_manifest_admission_config_controller", ("status", "plugin", "apiserver_id_hash")
        self._count = Counter(f"{prefix}_automatic_reloads_total", "[ALPHA] Reloads of manifests.", labels)
        self._last = Gauge(
            f"{prefix}_automatic_reload_last_timestamp_seconds", "[ALPHA] Last reload of manifests.", labels
        )
        self._config = Gauge(
            f"{prefix}_last_config_info", "[ALPHA] The manifests in force.", ("plugin", "apiserver_id_hash", "hash")
        )
        self._in_force: dict[str, str] = {}

    def note(self, plugin: str, status: str) -> None:
        """A reload was a ``success`` or a ``failure``."""
        self._count.labelled(status, plugin, "").value += 1
        self._last.labelled(status, plugin, "").value = time.time()

    def in_force(self, plugin: str, digest: str) -> None:
        """These manifests of a plug-in count from now on."""
        self._in_force[plugin] = digest
        self._config.forget()
        for each, shown in self._in_force.items():
            self._config.labelled(each, "", shown).value = 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._count, self._last, self._config


class WebhookMetrics:
    """Calls of webhooks; the phase is ``admit`` or ``validating``."""

    def __init__(self) -> None:
        prefix, labels = f"{_PREFIX}_webhook", ("name", "type", "operation")
        self._seconds = Histogram(
            f"{prefix}_admission_duration_seconds", "[STABLE] Seconds of a webhook.", (*labels, "rejected"), _WEBHOOK
        )
        self._requests = Counter(f"{prefix}_request_total", "[ALPHA] Calls of webhooks.", (*labels, "code", "rejected"))
        self._rejections = Counter(
            f"{prefix}_rejection_count",
            "[ALPHA] Requests refused by webhooks.",
            (*labels, "error_type", "rejection_code"),
        )
        self._open = Counter(
            f"{prefix}_fail_open_count", "[ALPHA] Failures of webhooks that were passed over.", ("name", "type")
        )
        certificates = "apiserver_webhooks_x509"
        self._weak = Counter(f"{certificates}_insecure_sha1_total", "[BETA] Certificates signed with SHA-1.")
        self._nameless = Counter(f"{certificates}_missing_san_total", "[BETA] Certificates without alternative names.")

    def called(self, name: str, phase: str, operation: str, seconds: float, code: int, *, rejected: bool) -> None:
        """A call ended."""
        shown = str(min(code, _LARGEST_CODE))
        self._requests.labelled(name, phase, operation, shown, _boolean(rejected)).value += 1
        self._seconds.labelled(name, phase, operation, _boolean(rejected)).observe(seconds)

    def refused(self, name: str, phase: str, operation: str, why: str, code: int) -> None:
        """A request was refused because of what a webhook said or failed to say."""
        self._rejections.labelled(name, phase, operation, why, str(min(code, _LARGEST_CODE))).value += 1

    def ignored(self, name: str, phase: str) -> None:
        """A failure was passed over."""
        self._open.labelled(name, phase).value += 1

    def failed(self, why: str) -> None:
        """A call failed; some reasons are counted."""
        if _TOO_WEAK in why:
            self._weak.labelled().value += 1
        if _NAMELESS in why:
            self._nameless.labelled().value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._seconds, self._requests, self._rejections, self._open, self._weak, self._nameless


class ConditionMetrics:
    """Match conditions of webhooks (``webhook``) and policies (``policy``)."""

    def __init__(self) -> None:
        prefix, labels = f"{_PREFIX}_match_condition", ("name", "kind", "type", "operation")
        self._errors = Counter(f"{prefix}_evaluation_errors_total", "[ALPHA] Conditions that failed.", labels)
        self._exclusions = Counter(f"{prefix}_exclusions_total", "[ALPHA] Webhooks kept out by conditions.", labels)
        self._seconds = Histogram(
            f"{prefix}_evaluation_seconds", "[ALPHA] Seconds to evaluate conditions.", labels, _CONDITION
        )

    def evaluated(self, name: str, kind: str, phase: str, operation: str, seconds: float, errs: int = 0) -> None:
        """All conditions of something were evaluated."""
        self._seconds.labelled(name, kind, phase, operation).observe(seconds)
        if errs:
            self._errors.labelled(name, kind, phase, operation).value += errs

    def excluded(self, name: str, kind: str, phase: str, operation: str) -> None:
        """Conditions kept something from being asked."""
        self._exclusions.labelled(name, kind, phase, operation).value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._errors, self._exclusions, self._seconds


class PolicyMetrics:
    """Expressions of policies of one kind."""

    def __init__(self, kind: str, level: str, more: tuple[str, ...] = ()) -> None:
        prefix, labels = f"apiserver_{kind}_admission_policy", ("policy", "policy_binding", "error_type", *more)
        self._checks = Counter(f"{prefix}_check_total", f"{level} Expressions of policies.", labels)
        self._seconds = Histogram(
            f"{prefix}_check_duration_seconds", f"{level} Seconds of an expression of a policy.", labels, _POLICY
        )

    def checked(self, seconds: float, policy: str, binding: str, error_type: str, *action: str) -> None:
        """An expression was evaluated, and this came of it."""
        self._checks.labelled(policy, binding, error_type, *action).value += 1
        self._seconds.labelled(policy, binding, error_type, *action).observe(seconds)

    def instruments(self) -> tuple[Instrument, ...]:
        """All of them."""
        return self._checks, self._seconds


def error_type(message: str) -> str:
    """What kind of failure a message of a policy tells of."""
    if message.startswith("compilation"):
        return "compile_error"
    if message.startswith("validation failed due to running out of cost budget"):
        return "out_of_budget"
    return "invalid_error"


def _boolean(value: bool) -> str:
    return "true" if value else "false"
