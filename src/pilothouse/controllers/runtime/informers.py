"""The informers of a process: each made when first asked for and shared by all who ask.

``of`` may be called before ``start``: handlers and indexes are then in place when the first object comes. Once started,
an informer begins as soon as it is asked for. Custom resources have informers too, whether or not they are served yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from weakref import WeakValueDictionary

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.index_gate import IndexGate
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.metrics import LATENCY_BUCKETS
from pilothouse.controllers.runtime.sources import FindSource
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.machinery.gvk import GroupVersion, GroupVersionResource
from pilothouse.machinery.metrics import CollectedGauge, CollectedHistogram, Counter, Instrument
from pilothouse.machinery.supervision import Supervisor


class _What(NamedTuple):
    gvr: GroupVersionResource
    namespace: str
    name: str

    def __str__(self) -> str:
        resource = str(self.gvr.group_resource)
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{resource} {where}" if where else resource

    @property
    def labels(self) -> tuple[str, ...]:
        """Its labels in metrics."""
        return self.gvr.group, "kube-apiserver", self.gvr.resource, self.gvr.version


class InformerFactory:
    """Gives out shared informers, which run until the supervisor is closed."""

    def __init__(self, find_source: FindSource, supervisor: Supervisor, clock: Clock = SYSTEM) -> None:
        self._find_source, self._supervisor, self._clock = find_source, supervisor, clock
        self._informers: dict[_What, Informer] = {}
        self._retired: WeakValueDictionary[_What, Informer] = WeakValueDictionary()
        """Those of resources that went, for as long as somebody still has them."""
        self._started = False
        self._gate = IndexGate()
        self._failures = Counter(
            "pilothouse_informer_handler_failures_total", "Events that a handler failed on.", ("resource",)
        )

    def of(self, group: str, version: str, resource: str, namespace: str = "", name: str = "") -> Informer:
        """The informer of a resource; of one namespace, or one object, where nobody needs more than that."""
        what = _What(GroupVersionResource(group, version, resource), namespace, name)
        informer = self._informers.get(what)
        return self._begin(what, self._retired.get(what) or self._make(what)) if informer is None else informer

    def _begin(self, what: _What, informer: Informer) -> Informer:
        self._informers[what] = informer
        self._retired.pop(what, informer)
        if self._started:
            informer.start(self._supervisor)
        return informer

    async def retire(self, gvr: GroupVersionResource) -> bool:
        """Keep nothing of a resource that is not served any more, if nobody follows it; whether that is so.

        Should it come back, whoever still has the informer finds it at work again.
        """
        what = _What(gvr, "", "")
        informer = self._informers.get(what)
        if informer is None:
            return True
        if not informer.is_idle:
            return False
        self._retired[what] = self._informers.pop(what)
        await informer.stop()
        return True

    def start(self) -> None:
        """Let all informers begin. Starting twice does nothing."""
        if not self._started:
            self._started = True
            for informer in self._informers.values():
                informer.start(self._supervisor)

    async def wait_synced(self) -> None:
        """Return when all informers of served resources that were asked for so far know what there is."""
        served = [informer for informer in self._informers.values() if informer.is_served]
        await asyncio.gather(*(informer.wait_synced() for informer in served))

    def version_changed(self, gv: GroupVersion, version: InstalledVersion | None) -> None:
        """Custom resources of a group version came, changed or went."""
        for what, informer in self._informers.items():
            if what.gvr.group_version == gv:
                informer.look_again()
        if version is not None:
            for what, informer in [*self._retired.items()]:
                if what.gvr.group_version == gv:
                    self._begin(what, informer)

    def not_synced(self) -> list[str]:
        """The served resources whose informers do not know all objects yet."""
        waiting = [(what, informer) for what, informer in self._informers.items() if not informer.was_synced]
        return [str(what) for what, informer in waiting if informer.is_served]

    def errors(self) -> list[str]:
        """Which informers do not come back, and what handlers keep failing on."""
        return [error for informer in self._informers.values() if (error := informer.errors())]

    def names(self) -> list[str]:
        """What there are informers of."""
        return sorted(map(str, self._informers))

    def instruments(self) -> Iterable[Instrument]:
        """What ``/metrics`` shows."""
        versions = CollectedGauge(
            "informer_store_resource_version",
            "[ALPHA] The version up to which an informer has told of changes.",
            ("group", "name", "resource", "version"),
            lambda: ((what.labels, informer.revision) for what, informer in self._shown()),
            joined="most",
        )
        latencies = CollectedHistogram(
            "informer_processing_latency_seconds",
            "[ALPHA] Seconds that handlers took for changes.",
            ("group", "name", "resource", "version"),
            LATENCY_BUCKETS,
            lambda: ((what.labels, informer.latencies) for what, informer in self._shown()),
        )
        return self._failures, versions, latencies

    def _shown(self) -> Iterator[tuple[_What, Informer]]:
        """Those of whole resources."""
        return ((what, informer) for what, informer in self._informers.items() if not (what.namespace or what.name))

    def _make(self, what: _What) -> Informer:
        count = self._failures.labelled(str(what.gvr.group_resource))

        def count_failure() -> None:
            count.value += 1

        return Informer(
            str(what),
            lambda: self._find_source(what.gvr),
            what.namespace,
            what.name,
            gate=self._gate,
            clock=self._clock,
            count_failure=count_failure,
        )
