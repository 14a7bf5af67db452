"""What a controller wrote last, so that it does not act on a view that is older than its own doing.

An informer is a moment behind the server. A controller that is woken before it has seen what it wrote would decide on
the old state: create what is there, delete another pod in place of the one that goes, collide with itself. It asks here
first, and leaves the object alone: the event that shows the write brings the key back.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from pilothouse.controllers.runtime.informer import Informer
from pilothouse.machinery.objects import Object

K = TypeVar("K", bound=Hashable)


class OwnWrites(Generic[K]):
    """The newest revisions that were written for each key, by the informer that is to show them."""

    def __init__(self) -> None:
        self._written: dict[K, dict[Informer, int]] = {}

    def wrote(self, key: K, informer: Informer, answer: Object) -> None:
        """Remember the answer to a write."""
        revision = int((answer.get("metadata") or {}).get("resourceVersion") or 0)
        if revision > informer.revision:
            known = self._written.setdefault(key, {})
            known[informer] = max(revision, known.get(informer, 0))

    def are_unseen(self, key: K) -> bool:
        """Whether something that was written for the key is yet to be seen."""
        known = self._written.get(key)
        if known is None:
            return False
        if any(informer.revision < revision for informer, revision in known.items()):
            return True
        del self._written[key]
        return False

    def __contains__(self, key: K) -> bool:
        return key in self._written

    def forget(self, key: K) -> None:
        """The object has gone."""
        self._written.pop(key, None)
