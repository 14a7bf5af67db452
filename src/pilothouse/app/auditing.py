"""From flags to auditing: the policy, the log file and the webhook, each with its batching and truncation."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from pilothouse.audit.log import LogSink, StandardOutput, Writer
from pilothouse.audit.metrics import AuditMetrics
from pilothouse.audit.policy import parse_policy
from pilothouse.audit.rotating_file import RotatingFile
from pilothouse.audit.sinks import Batching, Forgiving, Joined, Lose, Sink, Throttle, Truncating
from pilothouse.audit.webhook import Send, SendFailed, WebhookSink
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.webhook_calls import WebhookFailed
from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig
from pilothouse.filters.audit import Auditing

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions
    from pilothouse.options.audit import AuditOptions

logger = logging.getLogger(__name__)
_SECONDS: Final = 30.0


def build_auditing(options: ServerOptions, outgoing: OutgoingCalls, metrics: AuditMetrics) -> Auditing | None:
    """What the flags ask for; None where nothing is to be written down. Raises ``OSError`` and ``ValueError``."""
    flags = options.audit
    if not flags.policy_file:
        if flags.log_path or flags.webhook_config_file:
            logger.warning("no --audit-policy-file: no audit events are recorded")
        return None
    try:
        with open(flags.policy_file, "rb") as file:
            policy = parse_policy(file.read())
    except ValueError as error:
        raise ValueError(f"loading audit policy file: {error}: from file {flags.policy_file}") from None
    sinks: list[Sink] = []
    if flags.log_path:
        sinks.append(_log(flags, metrics.lose))
    if flags.webhook_config_file:
        sinks.append(_webhook(flags, outgoing, metrics.lose))
    if not sinks:
        return None
    return Auditing(policy, sinks[0] if len(sinks) == 1 else Joined(sinks), metrics)


def _log(flags: AuditOptions, lose: Lose) -> Sink:
    writer: Writer = StandardOutput()
    if flags.log_path != "-":
        writer = RotatingFile(
            flags.log_path, flags.log_maxsize, flags.log_maxbackup, flags.log_maxage, compress=flags.log_compress
        )
    sink: Sink = LogSink(writer, flags.log_format, threaded=flags.log_mode == "batch", lose=lose)
    if flags.log_mode == "batch":
        throttle = None
        if flags.log_batch_throttle_enable:
            throttle = Throttle(flags.log_batch_throttle_qps, flags.log_batch_throttle_burst, time.monotonic)
        sink = Batching(
            sink,
            flags.log_batch_buffer_size,
            flags.log_batch_max_size,
            flags.log_batch_max_wait,
            throttle,
            lose=lose,
        )
    elif flags.log_mode == "blocking":
        sink = Forgiving(sink)
    if flags.log_truncate_enabled:
        sink = Truncating(sink, flags.log_truncate_max_event_size, flags.log_truncate_max_batch_size, lose)
    return sink


def _webhook(flags: AuditOptions, outgoing: OutgoingCalls, lose: Lose) -> Sink:
    send = _sender(flags.webhook_config_file, outgoing)
    sink: Sink = WebhookSink(send, flags.webhook_initial_backoff, lose=lose)
    if flags.webhook_mode == "batch":
        throttle = None
        if flags.webhook_batch_throttle_enable:
            throttle = Throttle(flags.webhook_batch_throttle_qps, flags.webhook_batch_throttle_burst, time.monotonic)
        sink = Batching(
            sink,
            flags.webhook_batch_buffer_size,
            flags.webhook_batch_max_size,
            flags.webhook_batch_max_wait,
            throttle,
            concurrent=True,
            lose=lose,
        )
    elif flags.webhook_mode == "blocking":
        sink = Forgiving(sink)
    if flags.webhook_truncate_enabled:
        sink = Truncating(sink, flags.webhook_truncate_max_event_size, flags.webhook_truncate_max_batch_size, lose)
    return sink


def _sender(kubeconfig: str, outgoing: OutgoingCalls) -> Send:
    send_bytes = outgoing.sender_to(read_webhook_kubeconfig(kubeconfig), _SECONDS)

    async def send(body: bytes) -> None:
        try:
            await send_bytes(body)
        except WebhookFailed as failure:
            raise SendFailed(str(failure)) from None

    return send
