"""Flags of the audit log and the audit webhook, and the auditing they make."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pilothouse.machinery.go_quote import format_float, quote
from pilothouse.machinery.supervision import Supervisor
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, DURATION, FLOAT32, INT, STRING

if TYPE_CHECKING:
    from pilothouse.audit.buffering import Buffering
    from pilothouse.audit.metrics import AuditMetrics
    from pilothouse.audit.sinks import Lose, Sink
    from pilothouse.audit.webhook import Send
    from pilothouse.authn.outgoing import OutgoingCalls
    from pilothouse.filters.audit import Auditing

logger = logging.getLogger(__name__)
_WEBHOOK_SECONDS: Final = 30.0
_MODES = ("batch", "blocking", "blocking-strict")
_FORMATS = ("legacy", "json")


@dataclass
class AuditOptions(FlagGroup):
    """The ``auditing`` section."""

    section = "auditing"

    log_batch_buffer_size: int = flag("audit-log-batch-buffer-size", INT, 10000, "Events buffered in batch mode.")
    log_batch_max_size: int = flag("audit-log-batch-max-size", INT, 1, "Largest batch in batch mode.")
    log_batch_max_wait: float = flag("audit-log-batch-max-wait", DURATION, 0.0, "How long a batch waits to fill.")
    log_batch_throttle_burst: int = flag("audit-log-batch-throttle-burst", INT, 0, "Batches written at once at most.")
    log_batch_throttle_enable: bool = flag("audit-log-batch-throttle-enable", BOOL, False, "Limit the rate of batches.")
    log_batch_throttle_qps: float = flag("audit-log-batch-throttle-qps", FLOAT32, 0.0, "Batches a second on average.")
    log_compress: bool = flag("audit-log-compress", BOOL, False, "Compress rotated files with gzip.")
    log_format: str = flag("audit-log-format", STRING, "json", f"Format of the log: {', '.join(_FORMATS)}.")
    log_maxage: int = flag("audit-log-maxage", INT, 366, "Days to keep rotated files; 0 is for ever.")
    log_maxbackup: int = flag("audit-log-maxbackup", INT, 100, "Rotated files to keep; 0 is all.")
    log_maxsize: int = flag("audit-log-maxsize", INT, 100, "Megabytes after which the file is rotated; 0 is 100.")
    log_mode: str = flag("audit-log-mode", STRING, "blocking", f"How events are written: {', '.join(_MODES)}.")
    log_path: str = flag("audit-log-path", STRING, "", "File to write the audit log to; '-' is standard output.")
    log_truncate_enabled: bool = flag("audit-log-truncate-enabled", BOOL, False, "Shorten events that are too large.")
    log_truncate_max_batch_size: int = flag(
        "audit-log-truncate-max-batch-size", INT, 10485760, "Bytes in one batch before it is split."
    )
    log_truncate_max_event_size: int = flag(
        "audit-log-truncate-max-event-size", INT, 102400, "Bytes in one event before it is shortened."
    )
    log_version: str = flag(
        "audit-log-version", STRING, "audit.k8s.io/v1", "API version of the events in the log.", moot="there is one"
    )
    policy_file: str = flag("audit-policy-file", STRING, "", "File with the audit policy.")
    webhook_batch_buffer_size: int = flag(
        "audit-webhook-batch-buffer-size", INT, 10000, "Events buffered in batch mode."
    )
    webhook_batch_initial_backoff: float = flag(
        "audit-webhook-batch-initial-backoff",
        DURATION,
        10.0,
        "See --audit-webhook-initial-backoff.",
        hidden=True,
        deprecated="Deprecated, use --audit-webhook-initial-backoff instead.",
    )
    webhook_batch_max_size: int = flag("audit-webhook-batch-max-size", INT, 400, "Largest batch in batch mode.")
    webhook_batch_max_wait: float = flag(
        "audit-webhook-batch-max-wait", DURATION, 30.0, "How long a batch waits to fill."
    )
    webhook_batch_throttle_burst: int = flag(
        "audit-webhook-batch-throttle-burst", INT, 15, "Batches sent at once at most."
    )
    webhook_batch_throttle_enable: bool = flag(
        "audit-webhook-batch-throttle-enable", BOOL, True, "Limit the rate of batches."
    )
    webhook_batch_throttle_qps: float = flag(
        "audit-webhook-batch-throttle-qps", FLOAT32, 10.0, "Batches a second on average."
    )
    webhook_config_file: str = flag("audit-webhook-config-file", STRING, "", "Kubeconfig file of the audit webhook.")
    webhook_initial_backoff: float = flag(
        "audit-webhook-initial-backoff",
        DURATION,
        10.0,
        "Wait before the first failed request is tried again.",
    )
    webhook_mode: str = flag("audit-webhook-mode", STRING, "batch", f"How events are sent: {', '.join(_MODES)}.")
    webhook_truncate_enabled: bool = flag(
        "audit-webhook-truncate-enabled", BOOL, False, "Shorten events that are too large."
    )
    webhook_truncate_max_batch_size: int = flag(
        "audit-webhook-truncate-max-batch-size", INT, 10485760, "Bytes in one batch before it is split."
    )
    webhook_truncate_max_event_size: int = flag(
        "audit-webhook-truncate-max-event-size",
        INT,
        102400,
        "Bytes in one event before it is shortened.",
    )
    webhook_version: str = flag(
        "audit-webhook-version", STRING, "audit.k8s.io/v1", "API version of the events sent.", moot="there is one"
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
        """The first error of the batching options, which count only in batch mode."""
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

    def build(
        self, outgoing: OutgoingCalls, metrics: AuditMetrics, supervisor: Supervisor, *, shared: bool = False
    ) -> Auditing | None:
        """What the flags ask for; None where nothing is to be written down. Raises ``OSError`` and ``ValueError``.

        ``shared`` says that several processes write into the same log.
        """
        if not self.policy_file:
            if self.log_path or self.webhook_config_file:
                logger.warning("no --audit-policy-file: no audit events are recorded")
            return None
        from pilothouse.audit.policy import parse_policy
        from pilothouse.audit.sinks import Joined
        from pilothouse.filters.audit import Auditing

        try:
            with open(self.policy_file, "rb") as file:
                policy = parse_policy(file.read())
        except ValueError as error:
            raise ValueError(f"loading audit policy file: {error}: from file {self.policy_file}") from None
        sinks: list[Sink] = []
        if self.log_path:
            sinks.append(self._log(metrics.lose, supervisor, shared))
        if self.webhook_config_file:
            sinks.append(self._webhook(outgoing, metrics.lose, supervisor))
        if not sinks:
            return None
        return Auditing(policy, sinks[0] if len(sinks) == 1 else Joined(sinks), metrics, supervisor)

    def _log(self, lose: Lose, supervisor: Supervisor, shared: bool) -> Sink:
        from pilothouse.audit.buffering import buffer
        from pilothouse.audit.log import LogSink, StandardOutput, Writer
        from pilothouse.audit.rotating_file import RotatingFile

        writer: Writer = StandardOutput()
        if self.log_path != "-":
            writer = RotatingFile(
                self.log_path,
                self.log_maxsize,
                self.log_maxbackup,
                self.log_maxage,
                compress=self.log_compress,
                shared=shared,
            )
        sink = LogSink(writer, self.log_format, lose=lose)
        return buffer(sink, self._log_buffering(), lose, supervisor)

    def _log_buffering(self) -> Buffering:
        from pilothouse.audit.buffering import Buffering

        rate = (self.log_batch_throttle_qps, self.log_batch_throttle_burst)
        sizes = (self.log_truncate_max_event_size, self.log_truncate_max_batch_size)
        return Buffering(
            self.log_mode,
            self.log_batch_buffer_size,
            self.log_batch_max_size,
            self.log_batch_max_wait,
            rate if self.log_batch_throttle_enable else None,
            sizes if self.log_truncate_enabled else None,
        )

    def _webhook(self, outgoing: OutgoingCalls, lose: Lose, supervisor: Supervisor) -> Sink:
        from pilothouse.audit.buffering import buffer
        from pilothouse.audit.webhook import WebhookSink
        from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig

        send = outgoing.sender_to(read_webhook_kubeconfig(self.webhook_config_file), _WEBHOOK_SECONDS)
        sink = WebhookSink(_telling_failures(send), self.webhook_initial_backoff, lose=lose)
        return buffer(sink, self._webhook_buffering(), lose, supervisor, concurrent=True)

    def _webhook_buffering(self) -> Buffering:
        from pilothouse.audit.buffering import Buffering

        rate = (self.webhook_batch_throttle_qps, self.webhook_batch_throttle_burst)
        sizes = (self.webhook_truncate_max_event_size, self.webhook_truncate_max_batch_size)
        return Buffering(
            self.webhook_mode,
            self.webhook_batch_buffer_size,
            self.webhook_batch_max_size,
            self.webhook_batch_max_wait,
            rate if self.webhook_batch_throttle_enable else None,
            sizes if self.webhook_truncate_enabled else None,
        )


def _version_refusal(version: str) -> str:
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    if version != "audit.k8s.io/v1":
        return 'invalid group version, allowed versions are ["audit.k8s.io/v1"]'
    return ""


def _telling_failures(send_bytes: Callable[[bytes], Awaitable[bytes]]) -> Send:
    """Says in the words of auditing that a webhook failed."""
    from pilothouse.audit.webhook import SendFailed
    from pilothouse.authn.webhook_calls import WebhookFailed

    async def send(body: bytes) -> None:
        try:
            await send_bytes(body)
        except WebhookFailed as failure:
            raise SendFailed(str(failure)) from None

    return send
