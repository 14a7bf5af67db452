"""How large resources are, for estimates: objects are counted by the watch cache, their size is an average of a few.

A resource nobody has read yet is unknown, as is one that is served elsewhere: both are taken for small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from pilothouse.apis.resources import table
from pilothouse.flowcontrol.work import Size
from pilothouse.storage.cacher import Cacher, ResourceCache

_FRESH_SECONDS: Final = 10.0
_SAMPLE: Final = 16


class ResourceSizes:
    """Sizes by group and resource, each looked at again after some seconds."""

    def __init__(self, cacher: Cacher, root: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._cacher, self._root, self._clock = cacher, root, clock
        self._keys: Mapping[tuple[str, str], str] | None = None
        self._averages: dict[str, tuple[float, int]] = {}

    def __call__(self, group: str, resource: str) -> Size | None:
        prefix = f"{self._root}/{self._key(group, resource)}/"
        cache = self._cacher.find(prefix)
        if cache is None or not cache.ready:
            return None
        now = self._clock()
        known = self._averages.get(prefix)
        if known is None or now - known[0] > _FRESH_SECONDS:
            known = self._averages[prefix] = (now, _average(cache))
        return Size(len(cache), known[1])

    def _key(self, group: str, resource: str) -> str:
        if self._keys is None:
            rows = (row for version in table().values() for row in version.resources)
            self._keys = {(row.group, row.name): row.key for row in rows}
        return self._keys.get((group, resource)) or f"{group}/{resource}"


def _average(cache: ResourceCache) -> int:
    sample = cache.entries(limit=_SAMPLE)
    return sum(len(entry.data) for entry in sample) // len(sample) if sample else 0
