"""What is shown about the watch cache, read off it when somebody scrapes: objects, sizes, versions, watches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache

from pilothouse.apis.resources import table
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.metrics import CollectedGauge, Instrument
from pilothouse.storage.cacher import Cacher, ResourceCache

_LABELS = ("group", "resource")
_SAMPLE = 16
Names = Callable[[], Mapping[str, GroupResource]]
"""Resources by the key they are kept under."""


class StorageMetrics:
    """The families of one cluster's resources."""

    def __init__(
        self,
        cacher: Cacher,
        root: str,
        names: Names,
        count_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Objects are counted every ``count_seconds`` at most; 0 is never."""
        self._cacher, self._root, self._names = cacher, root, names
        self._count_seconds, self._clock = count_seconds, clock

    def instruments(self) -> list[Instrument]:
        """All of them."""
        counted = [
            self._counted("apiserver_resource_objects", "[ALPHA] Objects by resource.", len),
            self._counted(
                "apiserver_resource_size_estimate_bytes",
                "[ALPHA] Bytes of all objects, from a sample.",
                _estimated_bytes,
            ),
        ]
        return [
            *(counted if self._count_seconds > 0 else ()),
            self._gauge(
                "apiserver_watch_cache_resource_version",
                "[ALPHA] The version that the watch cache has reached.",
                lambda cache: cache.revision,
            ),
        ]

    def _gauge(self, name: str, words: str, read: Callable[[ResourceCache], float]) -> Instrument:
        return CollectedGauge(name, words, _LABELS, lambda: self._read(read), joined="most")

    def _counted(self, name: str, words: str, read: Callable[[ResourceCache], float]) -> Instrument:
        """A gauge that shows what was counted last until it is time to count again."""
        counted: list[tuple[tuple[str, ...], float]] = []
        due = 0.0

        def collect() -> Iterable[tuple[tuple[str, ...], float]]:
            nonlocal counted, due
            if not counted or self._clock() >= due:
                counted, due = list(self._read(read)), self._clock() + self._count_seconds
            return counted

        return CollectedGauge(name, words, _LABELS, collect)

    def _read(self, read: Callable[[ResourceCache], float]) -> Iterable[tuple[tuple[str, ...], float]]:
        names = self._names()
        for prefix, found in self._cacher.loaded():
            if prefix.startswith(self._root):
                name = names.get(prefix[len(self._root) + 1 : -1]) or _custom(prefix)
                yield (name.group, name.resource), read(found)


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
