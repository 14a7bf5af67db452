"""What is shown about the watch cache, read off it when somebody scrapes: objects, sizes, versions, watches."""

from __future__ import annotations

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

    def __init__(self, cacher: Cacher, root: str, names: Names) -> None:
        self._cacher, self._root, self._names = cacher, root, names

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [
            self._gauge("apiserver_resource_objects", "[ALPHA] Objects by resource.", len),
            self._gauge(
                "apiserver_resource_size_estimate_bytes",
                "[ALPHA] Bytes of all objects, from a sample.",
                _estimated_bytes,
            ),
            self._gauge(
                "apiserver_watch_cache_resource_version",
                "[ALPHA] The version that the watch cache has reached.",
                lambda cache: cache.revision,
            ),
        ]

    def _gauge(self, name: str, words: str, read: Callable[[ResourceCache], float]) -> Instrument:
        return CollectedGauge(name, words, _LABELS, lambda: self._read(read))

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
