"""Who watches what: finds the watchers of a change by its key, so that a change costs only those it may concern.

A watcher is registered under the prefix it watches (the whole resource, one namespace, or one key). The candidates
for a key are the watchers registered under the key itself and under each prefix of it that ends with a slash.

Those of them who wait for one value of a field or label (a kubelet for the pods of its node, or for one secret by name)
are found by that value: it must be that of the entry after the change or before. With 10,000 kubelets a change of a pod
is looked at by one or two of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.traits import Attribute

if TYPE_CHECKING:
    from pilothouse.storage.cacher.watcher import Watcher

logger = logging.getLogger(__name__)
_MOST_ABOVE: Final = 1024
Watchers = dict["Watcher", None]


class _Group:
    """The watchers of one prefix."""

    __slots__ = ("everything", "with_trait")

    def __init__(self) -> None:
        self.everything: Watchers = {}
        self.with_trait: dict[Attribute, dict[str, Watchers]] = {}
        """By the attribute that they ask by, and its value."""

    def __iter__(self) -> Iterator[Watcher]:
        yield from self.everything
        for by_value in self.with_trait.values():
            for watchers in by_value.values():
                yield from watchers

    def add(self, watcher: Watcher) -> None:
        if watcher.trait is None:
            self.everything[watcher] = None
        else:
            attribute, value = watcher.trait
            self.with_trait.setdefault(attribute, {}).setdefault(value, {})[watcher] = None

    def discard(self, watcher: Watcher) -> None:
        if watcher.trait is None:
            self.everything.pop(watcher, None)
            return
        attribute, value = watcher.trait
        by_value = self.with_trait.get(attribute, {})
        watchers = by_value.get(value, {})
        watchers.pop(watcher, None)
        if not watchers:
            by_value.pop(value, None)
        if not by_value:
            self.with_trait.pop(attribute, None)

    def concerned(self, change: Change) -> list[Watcher]:
        """Those whom a change may concern; a list of its own, because who cannot keep up leaves meanwhile."""
        found = list(self.everything)
        for attribute, by_value in self.with_trait.items():
            for value in {attribute.of(state) for state in (change.entry, change.previous) if state is not None}:
                if value is not None:
                    found += by_value.get(value, ())
        return found


class Audience:
    """The live watchers of one resource."""

    def __init__(self, prefix: str) -> None:
        self._length = len(prefix)
        self._groups: dict[str, _Group] = {}
        self._above: dict[str, list[_Group]] = {}
        """Of the places where changes were lately: who watches them, or what they are in."""

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Watcher]:
        for group in list(self._groups.values()):
            yield from list(group)

    def add(self, watcher: Watcher) -> None:
        group = self._groups.get(watcher.prefix)
        if group is None:
            group = self._groups[watcher.prefix] = _Group()
            self._above.clear()
        group.add(watcher)

    def discard(self, watcher: Watcher) -> None:
        group = self._groups.get(watcher.prefix)
        if group is not None:
            group.discard(watcher)
            if not group.everything and not group.with_trait:
                del self._groups[watcher.prefix]
                self._above.clear()

    def dispatch(self, change: Change) -> None:
        """Offer a change to all whom it may concern."""
        groups = self._groups_of(change.key) if self._groups else None
        if not groups:
            return
        plain = change.seen_by_all()
        for group in groups:
            for watcher in group.concerned(change):
                matches = watcher.matches
                try:
                    event = plain if matches is None else change.seen_through(matches)
                except Exception as error:
                    logger.exception("the selector of a watch on %s failed", watcher.prefix)
                    watcher.end(StorageError(f"selector failed: {error}"))
                    continue
                if event is not None:
                    watcher.offer(event)

    def _groups_of(self, key: str) -> list[_Group]:
        groups = self._groups
        above = key[: key.rfind("/") + 1]
        found = self._above.get(above)
        if found is None:
            if len(self._above) >= _MOST_ABOVE:
                self._above.clear()
            found = self._above[above] = self._groups_above(above)
        return [groups[key], *found] if key in groups else found

    def _groups_above(self, prefix: str) -> list[_Group]:
        """Those registered under a prefix of keys, and under prefixes of it."""
        groups, found, end = self._groups, [], len(prefix)
        while end >= self._length and end > 0:
            group = groups.get(prefix[:end])
            if group is not None:
                found.append(group)
            end = prefix.rfind("/", 0, end - 1) + 1
        return found
