"""What is counted about connections into the cluster."""

from __future__ import annotations

from pilothouse.machinery.metrics import Counter, Instrument


class LinkMetrics:
    """Streams that were translated, tunnelled or passed on, and logs by how kubelets were trusted."""

    def __init__(self) -> None:
        self._translated = Counter(
            "apiserver_stream_translator_requests_total",
            "[ALPHA] Exec and attach translated here, by code.",
            ("code",),
        )
        self._tunnelled = Counter(
            "apiserver_stream_tunnel_requests_total", "[ALPHA] Port-forwards, taken out of WebSockets here, by code.",
            ("code",),
        )  # fmt: skip
        self._streams = Counter(
            "apiserver_websocket_streaming_requests_total", "[ALPHA] Streams, by who understands the WebSocket.",
            ("subresource", "proxy_type"),
        )  # fmt: skip
        self._logs = Counter(
            "kube_apiserver_pod_logs_insecure_backend_total", "[ALPHA] Requests for logs, by how kubelets are trusted.",
            ("usage",),
        )  # fmt: skip
        self._untrusted = Counter(
            "kube_apiserver_pod_logs_backend_tls_failure_total", "[ALPHA] Logs refused over a kubelet's certificate."
        )

    def instruments(self) -> tuple[Instrument, ...]:
        """What ``/metrics`` shows."""
        return self._translated, self._tunnelled, self._streams, self._logs, self._untrusted

    def count_translated(self, code: int) -> None:
        """A translated stream has ended."""
        self._translated.labelled(str(code)).value += 1

    def count_tunnelled(self, code: int) -> None:
        """A tunnel has been granted or refused."""
        self._tunnelled.labelled(str(code)).value += 1

    def count_stream(self, subresource: str, *, is_native: bool) -> None:
        """A stream begins."""
        way = "proxied_to_kubelet" if is_native else "translated_at_apiserver"
        self._streams.labelled(subresource, way).value += 1

    def count_log(self, *, is_insecure: bool) -> None:
        """A log is asked for."""
        self._logs.labelled("skip_tls_allowed" if is_insecure else "enforce_tls").value += 1

    def count_untrusted(self) -> None:
        """A kubelet could not prove who it is."""
        self._untrusted.labelled().value += 1
