"""What is shown about APIServices."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.aggregator.remote import AVAILABLE
from pilothouse.controllers.own_objects import condition_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.metrics import CollectedGauge, Counter, Instrument


class AvailabilityMetrics:
    """Which APIServices are unavailable now, and how often they became so."""

    def __init__(self, informers: InformerFactory) -> None:
        self._informer = informers.of("apiregistration.k8s.io", "v1", "apiservices")
        self._now = CollectedGauge(
            "aggregator_unavailable_apiservice", "[ALPHA] 1 for each APIService that is unavailable, 0 for others.",
            ("name",), self._judged, joined="most",
        )  # fmt: skip
        self._total = Counter(
            "aggregator_unavailable_apiservice_total", "[ALPHA] How often APIServices became unavailable, and why.",
            ("name", "reason"),
        )  # fmt: skip

    def count_unavailable(self, name: str, reason: str) -> None:
        """An APIService that was available is so no more."""
        self._total.labelled(name, reason).value += 1

    def instruments(self) -> tuple[Instrument, ...]:
        """What ``/metrics`` shows."""
        return self._now, self._total

    def _judged(self) -> Iterable[tuple[tuple[str, ...], float]]:
        for service in self._informer.lister.list():
            available = (condition_of(service, AVAILABLE) or {}).get("status") == "True"
            yield (service["metadata"]["name"],), 0 if available else 1
