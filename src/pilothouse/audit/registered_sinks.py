"""Back ends of auditing that clients register as AuditSinks: each a webhook with a policy of its own."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from pilothouse.audit.buffering import Buffering, buffer
from pilothouse.audit.policy import LEVELS, STAGES, Verdict
from pilothouse.audit.sinks import Lose, Sink
from pilothouse.audit.webhook import Send, SendFailed, WebhookSink
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing.egress import Egress
from pilothouse.net.outgoing import Dial, OutgoingError, Tls
from pilothouse.registry.rest_client import RestClient

_AGENT: Final = "kube-apiserver-admission"
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, */*"}
_SECONDS: Final = 30
_BUFFERED: Final = 10000
_BATCH: Final = 400


@dataclass(frozen=True, slots=True)
class RegisteredSink:
    """One of them: what it wants to know, and how it is told."""

    verdict: Verdict
    sink: Sink


class SinkConnections:
    """Makes back ends, which share their connections."""

    def __init__(self, dial: Dial | None, egress: Egress, lose: Lose, supervisor: Supervisor) -> None:
        self._to_services = RestClient(dial, agent=_AGENT, dialer=egress.cluster)
        self._to_urls = RestClient(agent=_AGENT, dialer=egress.control_plane)
        self._lose, self._supervisor = lose, supervisor

    def connect(self, obj: Object) -> RegisteredSink:
        """The back end of an AuditSink."""
        policy, webhook = obj["spec"]["policy"], obj["spec"]["webhook"]
        verdict = Verdict(LEVELS[policy["level"]], frozenset(STAGES) - frozenset(policy.get("stages") or ()))
        throttle = webhook["throttle"]
        by = Buffering("batch", _BUFFERED, _BATCH, float(_SECONDS), (float(throttle["qps"]), int(throttle["burst"])))
        sink = WebhookSink(self._sender(webhook["clientConfig"]), lose=self._lose)
        return RegisteredSink(verdict, buffer(sink, by, self._lose, self._supervisor, concurrent=True))

    def _sender(self, client: Object) -> Send:
        service, authorities = client.get("service"), base64.b64decode(client.get("caBundle") or "").strip()
        if service is None:
            outgoing, url, tls = self._to_urls, client["url"], Tls(authorities)
        else:
            host, path = f"{service['name']}.{service['namespace']}.svc", (service.get("path") or "").lstrip("/")
            outgoing, url = self._to_services, f"https://{host}:{service.get('port', 443)}/{path}"
            tls = Tls(authorities, host)

        async def send(body: bytes) -> None:
            try:
                target = f"{url}?timeout={_SECONDS}s"
                answer = await outgoing.post(target, body, tls=tls, headers=_HEADERS, seconds=_SECONDS)
            except OutgoingError as error:
                raise SendFailed(str(error)) from None
            if not 200 <= answer.status < 300:
                raise SendFailed(f"the webhook answered with status {answer.status}")

        return send

    async def close(self) -> None:
        """Close all connections."""
        await self._to_services.close()
        await self._to_urls.close()
