"""What is shown about stored resources, read off their caches when somebody scrapes.

The families that kube-apiserver counts at etcd's client are those of the store here, whichever it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from pilothouse.apis.resources import table
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.metrics import CollectedGauge, CollectedHistogram, Instrument, counted_durations
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.shown_metrics import Deprecated
from pilothouse.storage.cacher import Cacher, ResourceCache
from pilothouse.storage.cacher.store_calls import CALL_BUCKETS
from pilothouse.storage.cacher.tally import LOAD_BUCKETS, WAIT_BUCKETS, ListTally

_LABELS: Final = ("group", "resource")
_SAMPLE: Final = 16
_LISTS: Final = ("list", "listWithCount")
Names = Callable[[], Mapping[str, GroupResource]]
"""Resources by the key they are kept under."""
Cachers = Callable[[], Iterable[Cacher]]
Numbers = Iterator[tuple[tuple[str, ...], float]]
Series = Iterator[tuple[tuple[str, ...], Observations]]
Read = Callable[[ResourceCache], float]


class StorageMetrics:
    """The families of one cluster's resources."""

    def __init__(
        self,
        cachers: Cachers,
        root: str,
        names: Names,
        count_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Objects are counted every ``count_seconds`` at most; 0 is never."""
        self._cachers, self._root, self._names = cachers, root, names
        self._count_seconds, self._clock = count_seconds, clock

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [*self._gauges(), *self._counters(), *self._lists(), *self._durations()]

    def _gauges(self) -> Iterator[Instrument]:
        """What several processes of one server know alike, so that it is not summed."""
        if self._count_seconds > 0:
            yield self._counted("apiserver_resource_objects", "[ALPHA] Objects by resource.", len)
            yield Deprecated(self._stored_objects(), "1.34.0")
            yield self._counted(
                "apiserver_resource_size_estimate_bytes",
                "[ALPHA] Bytes of all objects, from a sample.",
                _estimated_bytes,
            )
        yield self._gauge(
            "apiserver_watch_cache_resource_version",
            "[ALPHA] The version that the watch cache has reached.",
            lambda cache: cache.revision,
        )
        yield self._gauge(
            "watch_cache_capacity",
            "[ALPHA] Changes that the watch cache keeps at most.",
            lambda cache: cache.capacity,
        )

    def _gauge(self, name: str, words: str, read: Read) -> Instrument:
        return CollectedGauge(name, words, _LABELS, self._numbers(read), joined="most")

    def _counted(self, name: str, words: str, read: Read) -> Instrument:
        """A gauge that shows what was counted last until it is time to count again."""
        counted: list[tuple[tuple[str, ...], float]] = []
        due = 0.0

        def collect() -> Iterable[tuple[tuple[str, ...], float]]:
            nonlocal counted, due
            if not counted or self._clock() >= due:
                counted, due = list(self._numbers(read)()), self._clock() + self._count_seconds
            return counted

        return CollectedGauge(name, words, _LABELS, collect, joined="most")

    def _stored_objects(self) -> Instrument:
        """The numbers of objects under the name and the label they had before."""

        def collect() -> Numbers:
            for (group, resource), found in self._loaded():
                yield (f"{resource}.{group}" if group else resource,), len(found)

        words = "[STABLE] Objects by resource; apiserver_resource_objects has taken its place."
        return CollectedGauge("apiserver_storage_objects", words, ("resource",), collect, joined="most")

    def _counters(self) -> Iterator[Instrument]:
        for name, words, read in (
            (
                "apiserver_storage_events_received_total",
                "[BETA] Changes that came from the store.",
                lambda cache: cache.tally.events,
            ),
            (
                "apiserver_watch_cache_events_received_total",
                "[ALPHA] Changes that the watch cache has taken in.",
                lambda cache: cache.tally.events,
            ),
            (
                "apiserver_watch_cache_events_dispatched_total",
                "[ALPHA] Changes that were dispatched to all who watch.",
                lambda cache: cache.tally.events,
            ),
            (
                "apiserver_init_events_total",
                "[ALPHA] Objects that streamed lists began with.",
                lambda cache: cache.tally.initial_events,
            ),
            (
                "apiserver_watch_cache_initializations_total",
                "[ALPHA] How often the watch cache was loaded.",
                lambda cache: cache.tally.loads.count,
            ),
            (
                "apiserver_storage_decode_errors_total",
                "[ALPHA] Stored objects that could not be decoded.",
                lambda cache: cache.tally.decode_errors,
            ),
        ):
            yield CollectedGauge(name, words, _LABELS, self._numbers(read, skip_zero=True), "counter")
        yield CollectedGauge(
            "apiserver_watch_cache_consistent_read_total",
            "[ALPHA] Reads for which the store was asked how new it is.",
            ("fallback", *_LABELS, "success"),
            self._consistent_reads,
            "counter",
        )
        yield CollectedGauge(
            "etcd_request_errors_total",
            "[ALPHA] Requests to the store that failed, by operation.",
            ("operation", *_LABELS),
            self._failures,
            "counter",
        )

    def _lists(self) -> Iterator[Instrument]:
        for name, words, extra, read in (
            ("list_total", "[ALPHA] Lists by where they were answered from.", True, _count_lists),
            ("list_fetched_objects_total", "[ALPHA] Objects read for lists.", True, _count_seen),
            ("list_evaluated_objects_total", "[ALPHA] Objects that lists looked at.", False, _count_seen),
            ("list_returned_objects_total", "[ALPHA] Objects in answers to lists.", False, _count_returned),
        ):
            labels = (*_LABELS, "storage", *(("index",) if extra else ()))
            collect = self._list_numbers(read, ("",) if extra else ())
            yield CollectedGauge(f"apiserver_storage_{name}", words, labels, collect, "counter")
        for name, words, extra, read in (
            ("list_total", "[ALPHA] Lists answered from memory.", True, _count_lists),
            ("list_fetched_objects_total", "[ALPHA] Objects read from memory for lists.", True, _count_seen),
            ("list_returned_objects_total", "[ALPHA] Objects in lists from memory.", False, _count_returned),
        ):
            labels = (*_LABELS, *(("index",) if extra else ()))
            collect = self._cached_list_numbers(read, ("",) if extra else ())
            yield Deprecated(CollectedGauge(f"apiserver_cache_{name}", words, labels, collect, "counter"), "1.37.0")

    def _durations(self) -> Iterator[Instrument]:
        requests = CollectedHistogram(
            "etcd_request_duration_seconds",
            "[ALPHA] Seconds that requests to the store took, by operation.",
            ("operation", *_LABELS),
            CALL_BUCKETS,
            self._calls,
        )
        yield requests
        yield counted_durations(
            "etcd_requests_total", "[ALPHA] Requests to the store, by operation.", ("operation", *_LABELS), requests
        )
        yield CollectedHistogram(
            "apiserver_storage_list_duration_seconds",
            "[ALPHA] Seconds that lists read from the store took, a page at a time.",
            ("streamed", *_LABELS),
            CALL_BUCKETS,
            self._list_calls,
        )
        yield CollectedHistogram(
            "apiserver_watch_cache_initialization_duration_seconds",
            "[ALPHA] Seconds that loading the watch cache took.",
            _LABELS,
            LOAD_BUCKETS,
            lambda: ((name, found.tally.loads) for name, found in self._loaded()),
        )
        yield CollectedHistogram(
            "apiserver_watch_cache_read_wait_seconds",
            "[ALPHA] Seconds that reads waited for the watch cache to be as new as they asked for.",
            _LABELS,
            WAIT_BUCKETS,
            lambda: ((name, found.tally.waits) for name, found in self._loaded()),
        )

    def _loaded(self) -> Iterator[tuple[tuple[str, str], ResourceCache]]:
        """The caches of this cluster, under the names of their resources."""
        names = self._names()
        for cacher in self._cachers():
            for prefix, found in cacher.loaded():
                if prefix.startswith(self._root):
                    name = names.get(prefix[len(self._root) + 1 : -1]) or _custom(prefix)
                    yield (name.group, name.resource), found

    def _numbers(self, read: Read, *, skip_zero: bool = False) -> Callable[[], Numbers]:
        def collect() -> Numbers:
            for name, found in self._loaded():
                number = read(found)
                if number or not skip_zero:
                    yield name, number

        return collect

    def _consistent_reads(self) -> Numbers:
        for (group, resource), found in self._loaded():
            asked, failed = found.tally.consistent_reads, found.tally.failed_reads
            if asked > failed:
                yield ("false", group, resource, "true"), asked - failed
            if failed:
                yield ("false", group, resource, "false"), failed

    def _failures(self) -> Numbers:
        for name, found in self._loaded():
            for operation, number in found.calls.failures.items():
                yield (operation, *name), number

    def _list_numbers(self, read: Callable[[ListTally], int], extra: tuple[str, ...]) -> Callable[[], Numbers]:
        def collect() -> Numbers:
            for name, found in self._loaded():
                tally = found.tally
                for storage, counted in (("etcd", tally.stored_lists), ("watchcache", tally.cached_lists)):
                    if counted.lists:
                        yield (*name, storage, *extra), read(counted)

        return collect

    def _cached_list_numbers(self, read: Callable[[ListTally], int], extra: tuple[str, ...]) -> Callable[[], Numbers]:
        def collect() -> Numbers:
            for name, found in self._loaded():
                if found.tally.cached_lists.lists:
                    yield (*name, *extra), read(found.tally.cached_lists)

        return collect

    def _calls(self) -> Series:
        for name, found in self._loaded():
            for operation, seen in found.calls.durations.items():
                yield (operation, *name), seen

    def _list_calls(self) -> Series:
        for name, found in self._loaded():
            pages = [seen for operation in _LISTS if (seen := found.calls.durations.get(operation)) is not None]
            if pages:
                yield ("false", *name), Observations.joined(pages)


@cache
def resources_by_key() -> Mapping[str, GroupResource]:
    """The resources of the table by the key they are kept under."""
    rows = (row for version in table().values() for row in version.resources)
    return {row.key: GroupResource(row.group, row.name) for row in rows if row.group == row.hub.group}


def _custom(prefix: str) -> GroupResource:
    """Custom resources are kept by group and name."""
    *_, group, resource, _ = prefix.split("/")
    return GroupResource(group, resource)


def _estimated_bytes(cache: ResourceCache) -> float:
    sample = cache.entries(limit=_SAMPLE)
    return len(cache) * sum(len(entry.data) for entry in sample) // len(sample) if sample else 0


def _count_lists(tally: ListTally) -> int:
    return tally.lists


def _count_seen(tally: ListTally) -> int:
    return tally.seen


def _count_returned(tally: ListTally) -> int:
    return tally.returned
