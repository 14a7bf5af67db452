"""The client that asks webhooks and other API servers, counted as Kubernetes' own clients are, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from pilothouse.machinery.metrics import Counter, Histogram, Instrument
from pilothouse.net.outgoing import Answer, OutgoingClient, Tls

_FAILED: Final = "<error>"
_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
_REQUESTS: Final = Counter(
    "rest_client_requests_total",
    "[ALPHA] Requests to webhooks and other API servers, by code, method and host.",
    ("code", "method", "host"),
)
_DURATIONS: Final = Histogram(
    "rest_client_request_duration_seconds",
    "[ALPHA] Seconds that webhooks and other API servers took to answer.",
    ("verb", "host"),
    _SECONDS,
)
_SENT: Final = Histogram(
    "rest_client_request_size_bytes", "[ALPHA] Bytes sent to webhooks and other API servers.", ("verb", "host"), _BYTES
)
_RECEIVED: Final = Histogram(
    "rest_client_response_size_bytes",
    "[ALPHA] Bytes received from webhooks and other API servers.",
    ("verb", "host"),
    _BYTES,
)


class RestClient(OutgoingClient):
    """Makes requests, and counts them."""

    async def _call(
        self,
        method: str,
        url: str,
        body: bytes,
        tls: Tls,
        headers: Mapping[str, str] | None,
        seconds: float,
        limit: int,
    ) -> Answer:
        host = urlsplit(url).netloc.rpartition("@")[2]
        began, code = perf_counter(), _FAILED
        _SENT.labelled(method, host).observe(len(body))
        try:
            answer = await super()._call(method, url, body, tls, headers, seconds, limit)
            code = str(answer.status)
            _RECEIVED.labelled(method, host).observe(len(answer.body))
            return answer
        finally:
            _DURATIONS.labelled(method, host).observe(perf_counter() - began)
            _REQUESTS.labelled(code, method, host).value += 1


def instruments() -> tuple[Instrument, ...]:
    """All of them."""
    return _REQUESTS, _DURATIONS, _SENT, _RECEIVED
