"""What is counted about peers."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.metrics import Counter, Instrument

ENDPOINT_RESOLUTION: Final = "endpoint_resolution"
HOST_PORT_RESOLUTION: Final = "hostport_resolution"
FETCH_DISCOVERY: Final = "fetch_discovery"
DISCOVERY: Final = GroupVersionResource("", "", "")
"""Stands for questions of our own."""
_RESOURCE: Final = ("group", "version", "resource")


class PeerMetrics:
    """Requests that went to peers, what went wrong with them, and merged discovery."""

    def __init__(self) -> None:
        self._passed = Counter(
            "apiserver_rerouted_request_total",
            "[ALPHA] Requests that were passed on to a peer, because this server does not serve the resource. "
            "Questions about a peer's discovery have no resource.",
            ("code", *_RESOURCE),
        )
        self._errors = Counter(
            "apiserver_peer_proxy_errors_total",
            "[ALPHA] Requests that could not be passed on to a peer, by cause.",
            ("type", *_RESOURCE),
        )
        self._sync_errors = Counter(
            "apiserver_peer_discovery_sync_errors_total",
            "[ALPHA] Failures to learn what a peer serves, by cause.",
            ("type",),
        )
        self._hits = Counter(
            "aggregator_discovery_peer_aggregated_cache_hits_total",
            "[ALPHA] How often discovery of all peers was answered from a kept document.",
        )
        self._misses = Counter(
            "aggregator_discovery_peer_aggregated_cache_misses_total",
            "[ALPHA] How often discovery was merged from all peers.",
        )
        self._nopeer = Counter(
            "aggregator_discovery_nopeer_requests_total",
            "[ALPHA] How often discovery of this server alone was asked for.",
        )

    def count_passed(self, status: int, resource: GroupVersionResource = DISCOVERY) -> None:
        """A request was answered by a peer."""
        self._passed.labelled(str(status), *resource).value += 1

    def count_error(self, kind: str, resource: GroupVersionResource) -> None:
        """A request could not be passed on."""
        self._errors.labelled(kind, *resource).value += 1

    def count_sync_error(self, kind: str) -> None:
        """What a peer serves could not be learnt."""
        self._sync_errors.labelled(kind).value += 1

    def count_merged(self, *, kept: bool) -> None:
        """The merged document was asked for."""
        (self._hits if kept else self._misses).labelled().value += 1

    def count_nopeer(self) -> None:
        """The document of this server alone was asked for."""
        self._nopeer.labelled().value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """What ``/metrics`` shows."""
        return self._passed, self._errors, self._sync_errors, self._hits, self._misses, self._nopeer
