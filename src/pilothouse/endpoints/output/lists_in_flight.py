"""The bytes of lists that are on their way to clients, shared by all who ask for the same one meanwhile.

Informers ask for the same list all at once when a server comes back. Joining its items takes a fifth of what such a
list costs, encryption included, and is done once for all of them.

What is guaranteed: a list is shared only with the very same entries, in their order, in the same form. Pieces are made
when the first client has room for them, and nothing is kept when the last one has what it asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import WeakValueDictionary

from pilothouse.storage.cacher import Entry

Key = tuple[int, int, int, int]


class ItemsInFlight:
    """Items of a list, joined in pieces as they are wanted. ``length`` is that of all pieces together."""

    __slots__ = ("__weakref__", "_entries", "_form", "_made", "_making", "length")

    def __init__(self, form: object, entries: Sequence[Entry], length: int, pieces: Iterator[bytes]) -> None:
        self._form, self._entries, self.length = form, entries, length
        self._made: list[bytes] = []
        self._making = pieces

    def is_of(self, form: object, entries: Sequence[Entry]) -> bool:
        """Whether it is this list: keys name objects by their places in memory, which others may have had."""
        return self._form is form and self._entries == entries

    def __iter__(self) -> Iterator[bytes]:
        made, number = self._made, 0
        while True:
            if number == len(made):
                piece = next(self._making, None)
                if piece is None:
                    return
                made.append(piece)
            yield made[number]
            number += 1


class ListsInFlight:
    """See the module's docstring. Lists have at least one entry."""

    def __init__(self) -> None:
        self._lists: WeakValueDictionary[Key, ItemsInFlight] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._lists)

    def find(self, form: object, entries: Sequence[Entry]) -> ItemsInFlight | None:
        """The items of these entries in this form, if a client is getting them."""
        found = self._lists.get(_key(form, entries))
        return found if found is not None and found.is_of(form, entries) else None

    def add(self, form: object, entries: Sequence[Entry], length: int, pieces: Iterator[bytes]) -> ItemsInFlight:
        """Share what is made of these pieces."""
        items = self._lists[_key(form, entries)] = ItemsInFlight(form, entries, length, pieces)
        return items


def _key(form: object, entries: Sequence[Entry]) -> Key:
    return id(form), id(entries[0]), id(entries[-1]), len(entries)
