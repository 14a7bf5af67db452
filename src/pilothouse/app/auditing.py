"""From flags to auditing: the policy, the log file and the webhook, each with its batching and truncation."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

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
    sink = LogSink(writer, flags.log_format, threaded=flags.log_mode == "batch", lose=lose)
    return _buffered(sink, flags, "log", lose)


def _webhook(flags: AuditOptions, outgoing: OutgoingCalls, lose: Lose) -> Sink:
    send = _sender(flags.webhook_config_file, outgoing)
    sink = WebhookSink(send, flags.webhook_initial_backoff, lose=lose)
    return _buffered(sink, flags, "webhook", lose, concurrent=True)


def _buffered(sink: Sink, flags: AuditOptions, family: str, lose: Lose, *, concurrent: bool = False) -> Sink:
    """What stands before a sink; the flags ``audit-log-…`` and ``audit-webhook-…`` say it in the same words."""

    def given(name: str) -> Any:
        return getattr(flags, f"{family}_{name}")

    if given("mode") == "batch":
        throttle = None
        if given("batch_throttle_enable"):
            throttle = Throttle(given("batch_throttle_qps"), given("batch_throttle_burst"), time.monotonic)
        size, most, wait = given("batch_buffer_size"), given("batch_max_size"), given("batch_max_wait")
        sink = Batching(sink, size, most, wait, throttle, concurrent=concurrent, lose=lose)
    elif given("mode") == "blocking":
        sink = Forgiving(sink)
    if given("truncate_enabled"):
        sink = Truncating(sink, given("truncate_max_event_size"), given("truncate_max_batch_size"), lose)
    return sink


def _sender(kubeconfig: str, outgoing: OutgoingCalls) -> Send:
    send_bytes = outgoing.sender_to(read_webhook_kubeconfig(kubeconfig), _SECONDS)

    async def send(body: bytes) -> None:
        try:
            await send_bytes(body)
        except WebhookFailed as failure:
            raise SendFailed(str(failure)) from None

    return send
