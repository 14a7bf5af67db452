"""Entries by the value of a field or label, for the few that clients ask by often: chosen by use, not by hand.

A list with a selector looks at every entry, which is quick (0.1 µs each) until a resource has a hundred thousand and
each of ten thousand kubelets asks for the pods of its node. An index spares those looks and costs a little at every
change, and some memory. So each attribute has a *credit*: a list adds the looks that it took or was spared, a change
takes one away. An index is built when the credit is several times what there is, and goes when it is used up.

    credit  0 ──looks──► 8 × entries: built (in turns, by the cacher's clock) ──use──► 16 × entries at most
                                                     └──changes without use──► 0: dropped

An index is asked only where few entries have the value: many are found sooner by looking at all, in their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.traits import Attribute, Trait

FEWEST: Final = 2000
"""Of fewer entries all are looked at in a turn of the loop."""
MOST_FOUND: Final = 2000
"""More than that are not put in order in one turn of the loop."""
_WORTH_BUILDING: Final = 8
_MOST_CREDIT: Final = 16
_MOST_INDEXES: Final = 4
_MOST_KNOWN: Final = 64  # attributes come from clients
_SLICE: Final = 2000


class _Use:
    """How much an attribute is asked by."""

    __slots__ = ("_changes", "_credit", "index", "is_complete")

    def __init__(self) -> None:
        self._credit = self._changes = 0
        self.index: dict[str, set[Entry]] | None = None
        self.is_complete = False

    def credit(self, changes: int) -> int:
        """What is left of it after so many changes of the resource."""
        self._credit = max(0, self._credit - (changes - self._changes))
        self._changes = changes
        return self._credit

    def add(self, looks: int, changes: int, most: int) -> None:
        self._credit = min(most, self.credit(changes) + looks)

    def drop(self) -> None:
        self.index, self.is_complete = None, False


class ValueIndexes:
    """The indexes of one resource. ``is_current`` tells whether an entry is still the state of its object."""

    def __init__(self, is_current: Callable[[Entry], bool], fewest: int = FEWEST) -> None:
        self._is_current, self._fewest = is_current, fewest
        self._uses: dict[Attribute, _Use] = {}
        self._kept: dict[Attribute, dict[str, set[Entry]]] = {}
        self._changes = 0

    @property
    def attributes(self) -> list[Attribute]:
        """By what there are indexes that can be asked."""
        return [attribute for attribute, use in self._uses.items() if use.is_complete]

    def find(self, trait: Trait, looks: int, total: int) -> set[Entry] | None:
        """The entries, of ``total``, that have this trait; None where one has to look, at so many of them."""
        if looks < self._fewest:
            return None
        use = self._uses.get(trait.attribute)
        if use is None:
            if len(self._uses) >= _MOST_KNOWN:
                self._forget_one()
            use = self._uses[trait.attribute] = _Use()
        if use.index is not None and use.is_complete:
            found = use.index.get(trait.value, set())
            if len(found) > min(MOST_FOUND, looks):
                return None
            use.add(looks, self._changes, _MOST_CREDIT * total)
            return found
        use.add(looks, self._changes, _MOST_CREDIT * total)
        return None

    def change(self, previous: Entry | None, entry: Entry | None) -> None:
        """One entry has replaced another, has come, or has gone."""
        self._changes += 1
        for attribute, index in self._kept.items():
            if previous is not None:
                _take_out(index, attribute.of(previous), previous)
            if entry is not None:
                _put_in(index, attribute.of(entry), entry)

    def clear(self) -> None:
        """All entries have gone, and nothing is known about them any more."""
        for use in self._uses.values():
            use.drop()
        self._uses.clear()
        self._kept.clear()

    async def keep_up(self, entries: Callable[[], list[Entry]], total: int) -> None:
        """Drop indexes that nobody uses and build one that would pay, from all entries, in turns of the loop."""
        wanted: Attribute | None = None
        for attribute, use in self._uses.items():
            credit = use.credit(self._changes)
            if use.index is not None and credit == 0:
                use.drop()
                self._kept.pop(attribute, None)
            elif use.index is None and total >= self._fewest and credit >= _WORTH_BUILDING * total:
                wanted = attribute
        if wanted is not None and len(self._kept) < _MOST_INDEXES:
            await self._build(wanted, self._uses[wanted], entries())

    async def _build(self, attribute: Attribute, use: _Use, entries: list[Entry]) -> None:
        """Add what there is; what changes meanwhile is added or taken out as it happens."""
        index: dict[str, set[Entry]] = {}
        use.index = self._kept[attribute] = index
        is_current = self._is_current
        try:
            for first in range(0, len(entries), _SLICE):
                for entry in entries[first : first + _SLICE]:
                    if is_current(entry):
                        _put_in(index, attribute.of(entry), entry)
                await asyncio.sleep(0)
                if use.index is not index:  # all has gone meanwhile
                    return
            use.is_complete = True
        finally:
            if use.index is index and not use.is_complete:
                use.drop()
                del self._kept[attribute]

    def _forget_one(self) -> None:
        """Make room for another attribute: of those without an index, the one that is asked by least goes."""
        others = [(use.credit(self._changes), attribute) for attribute, use in self._uses.items() if use.index is None]
        del self._uses[min(others)[1]]


def _put_in(index: dict[str, set[Entry]], value: str | None, entry: Entry) -> None:
    if value is None:
        return
    found = index.get(value)
    if found is None:
        index[value] = {entry}
    else:
        found.add(entry)


def _take_out(index: dict[str, set[Entry]], value: str | None, entry: Entry) -> None:
    if value is None or (found := index.get(value)) is None:
        return
    found.discard(entry)
    if not found:
        del index[value]
