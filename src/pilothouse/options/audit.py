"""Flags of the audit log and the audit webhook."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.machinery.go_quote import format_float, quote
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, DURATION, FLOAT32, INT, STRING

_MODES = ("batch", "blocking", "blocking-strict")
_FORMATS = ("legacy", "json")


@dataclass
class AuditOptions(FlagGroup):
    """The ``auditing`` section."""

    section = "auditing"

    log_batch_buffer_size: int = flag(
        "audit-log-batch-buffer-size", INT, 10000, "Events buffered in batch mode.", effective=True
    )
    log_batch_max_size: int = flag("audit-log-batch-max-size", INT, 1, "Largest batch in batch mode.", effective=True)
    log_batch_max_wait: float = flag(
        "audit-log-batch-max-wait", DURATION, 0.0, "How long a batch waits to fill.", effective=True
    )
    log_batch_throttle_burst: int = flag(
        "audit-log-batch-throttle-burst", INT, 0, "Batches written at once at most.", effective=True
    )
    log_batch_throttle_enable: bool = flag(
        "audit-log-batch-throttle-enable", BOOL, False, "Limit the rate of batches.", effective=True
    )
    log_batch_throttle_qps: float = flag(
        "audit-log-batch-throttle-qps", FLOAT32, 0.0, "Batches a second on average.", effective=True
    )
    log_compress: bool = flag("audit-log-compress", BOOL, False, "Compress rotated files with gzip.", effective=True)
    log_format: str = flag(
        "audit-log-format", STRING, "json", f"Format of the log: {', '.join(_FORMATS)}.", effective=True
    )
    log_maxage: int = flag("audit-log-maxage", INT, 366, "Days to keep rotated files; 0 is for ever.", effective=True)
    log_maxbackup: int = flag("audit-log-maxbackup", INT, 100, "Rotated files to keep; 0 is all.", effective=True)
    log_maxsize: int = flag(
        "audit-log-maxsize", INT, 100, "Megabytes after which the file is rotated; 0 is 100.", effective=True
    )
    log_mode: str = flag(
        "audit-log-mode", STRING, "blocking", f"How events are written: {', '.join(_MODES)}.", effective=True
    )
    log_path: str = flag(
        "audit-log-path", STRING, "", "File to write the audit log to; '-' is standard output.", effective=True
    )
    log_truncate_enabled: bool = flag(
        "audit-log-truncate-enabled", BOOL, False, "Shorten events that are too large.", effective=True
    )
    log_truncate_max_batch_size: int = flag(
        "audit-log-truncate-max-batch-size", INT, 10485760, "Bytes in one batch before it is split.", effective=True
    )
    log_truncate_max_event_size: int = flag(
        "audit-log-truncate-max-event-size", INT, 102400, "Bytes in one event before it is shortened.", effective=True
    )
    log_version: str = flag(
        "audit-log-version", STRING, "audit.k8s.io/v1", "API version of the events in the log.", effective=True
    )
    policy_file: str = flag("audit-policy-file", STRING, "", "File with the audit policy.", effective=True)
    webhook_batch_buffer_size: int = flag(
        "audit-webhook-batch-buffer-size", INT, 10000, "Events buffered in batch mode.", effective=True
    )
    webhook_batch_initial_backoff: float = flag(
        "audit-webhook-batch-initial-backoff",
        DURATION,
        10.0,
        "See --audit-webhook-initial-backoff.",
        hidden=True,
        deprecated="Deprecated, use --audit-webhook-initial-backoff instead.",
        effective=True,
    )
    webhook_batch_max_size: int = flag(
        "audit-webhook-batch-max-size", INT, 400, "Largest batch in batch mode.", effective=True
    )
    webhook_batch_max_wait: float = flag(
        "audit-webhook-batch-max-wait", DURATION, 30.0, "How long a batch waits to fill.", effective=True
    )
    webhook_batch_throttle_burst: int = flag(
        "audit-webhook-batch-throttle-burst", INT, 15, "Batches sent at once at most.", effective=True
    )
    webhook_batch_throttle_enable: bool = flag(
        "audit-webhook-batch-throttle-enable", BOOL, True, "Limit the rate of batches.", effective=True
    )
    webhook_batch_throttle_qps: float = flag(
        "audit-webhook-batch-throttle-qps", FLOAT32, 10.0, "Batches a second on average.", effective=True
    )
    webhook_config_file: str = flag(
        "audit-webhook-config-file", STRING, "", "Kubeconfig file of the audit webhook.", effective=True
    )
    webhook_initial_backoff: float = flag(
        "audit-webhook-initial-backoff",
        DURATION,
        10.0,
        "Wait before the first failed request is tried again.",
        effective=True,
    )
    webhook_mode: str = flag(
        "audit-webhook-mode", STRING, "batch", f"How events are sent: {', '.join(_MODES)}.", effective=True
    )
    webhook_truncate_enabled: bool = flag(
        "audit-webhook-truncate-enabled", BOOL, False, "Shorten events that are too large.", effective=True
    )
    webhook_truncate_max_batch_size: int = flag(
        "audit-webhook-truncate-max-batch-size", INT, 10485760, "Bytes in one batch before it is split.", effective=True
    )
    webhook_truncate_max_event_size: int = flag(
        "audit-webhook-truncate-max-event-size",
        INT,
        102400,
        "Bytes in one event before it is shortened.",
        effective=True,
    )
    webhook_version: str = flag(
        "audit-webhook-version", STRING, "audit.k8s.io/v1", "API version of the events sent.", effective=True
    )

    def validate(self, given: Set[str]) -> list[str]:
        """The back ends that are switched on, each with its batching, truncation and format."""
        errors = []
        if self.log_path:
            errors += self._backend_errors("log") + self._log_errors()
        if self.webhook_config_file:
            errors += self._backend_errors("webhook")
        return errors

    def _backend_errors(self, backend: str) -> list[str]:
        def value(name: str) -> int:
            return int(getattr(self, f"{backend}_{name}"))

        errors = [self._batch_refusal(backend)]
        event, batch = value("truncate_max_event_size"), value("truncate_max_batch_size")
        if event <= 0:
            errors.append(f"invalid audit truncate {backend} max event size {event}, must be a positive number")
        elif batch < event:
            errors.append(
                f"invalid audit truncate {backend} max batch size {batch}, must be greater than "
                f"max event size ({event})"
            )
        errors.append(_version_refusal(getattr(self, f"{backend}_version")))
        return [error for error in errors if error]

    def _batch_refusal(self, backend: str) -> str:
        """The first fault of the batching options, which count only in batch mode."""
        mode = getattr(self, f"{backend}_mode")
        if mode not in _MODES:
            return f"invalid audit {backend} mode {mode}, allowed modes are {quote(','.join(_MODES))}"
        if mode != "batch":
            return ""
        sizes = [("buffer size", "buffer_size"), ("max batch size", "max_size")]
        if getattr(self, f"{backend}_batch_throttle_enable"):
            sizes += [("throttle QPS", "throttle_qps"), ("throttle burst", "throttle_burst")]
        for title, name in sizes:
            value = getattr(self, f"{backend}_batch_{name}")
            if value <= 0:
                return f"invalid audit batch {backend} {title} {format_float(float(value))}, must be a positive number"
        return ""

    def _log_errors(self) -> list[str]:
        errors = []
        if self.log_format not in _FORMATS:
            errors.append(
                f"invalid audit log format {self.log_format}, allowed formats are {quote(','.join(_FORMATS))}"
            )
        for name in ("maxage", "maxbackup", "maxsize"):
            value = getattr(self, f"log_{name}")
            if value < 0:
                errors.append(f"--audit-log-{name} {value} can't be a negative number")
        return errors


def _version_refusal(version: str) -> str:
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if version != "audit.k8s.io/v1":
        return 'invalid group version, allowed versions are ["audit.k8s.io/v1"]'
    return ""
