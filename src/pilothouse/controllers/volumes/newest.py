"""Objects as new as they are known to be: what an informer says, or what was written since.

An informer is a moment behind. Who decides by what it has just written itself must not be told the state before.
"""

from __future__ import annotations

from pilothouse.controllers.runtime.indexer import Key, Lister, key_of
from pilothouse.machinery.objects import Object


class Newest:
    """A lister that knows our own writes."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._written: dict[Key, Object] = {}

    def get(self, namespace: str, name: str) -> Object | None:
        """One object; None if there is none."""
        found = self._lister.get(namespace, name)
        return None if found is None else self._newer(found)

    def list(self) -> list[Object]:
        """All objects."""
        return [self._newer(obj) for obj in self._lister.list()]

    def note(self, obj: Object) -> Object:
        """Remember what the server answered to a write."""
        self._written[key_of(obj)] = obj
        return obj

    def forget(self, key: Key) -> None:
        """The object has gone."""
        self._written.pop(key, None)

    def _newer(self, found: Object) -> Object:
        key = key_of(found)
        written = self._written.get(key)
        if written is None:
            return found
        if written["metadata"]["uid"] == found["metadata"]["uid"] and _version(written) > _version(found):
            return written
        del self._written[key]
        return found


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)
