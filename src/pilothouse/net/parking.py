"""Connections that have said nothing for a while are watched together, and a few of them are told of in each turn.

The loop calls for every socket that has something to be read, in the turn in which it notices, and each call takes some
microseconds before anything is read. When ten thousand watches are cut off in one moment, that is a turn of 100 ms, and
the loop would remind of those who still wait in the next one. So who has been silent for a second is taken from the
loop and put into a set of descriptors (epoll) that is one descriptor for the loop: what can be read is asked of it some
at a time, in turns with everybody else. Whoever speaks all the time never comes here; who came stays.

Where the system has no such sets, connections stay with the loop.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

SILENT_SECONDS: Final = 1.0
"""Who has said nothing for so long may be parked."""
A_TURN: Final = 64
"""So many are told of in one turn of the loop."""
_MAKE: Final[Callable[[], Any] | None] = getattr(select, "epoll", None)


class Parkable(Protocol):
    """A transport that can be parked."""

    def park(self, parking: Parking) -> None:
        """Be told of input by the parking from now on; nothing if that is so already."""


class Parking:
    """The silent connections of one server."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._readers: dict[int, Callable[[], object]] = {}
        self._set: Any = None
        self._is_closed = _MAKE is None

    def __len__(self) -> int:
        return len(self._readers)

    def take(self, transport: asyncio.BaseTransport) -> None:
        """Have a transport parked, if it is one that can be."""
        park = getattr(transport, "park", None)
        if park is not None and not self._is_closed:
            park(self)

    def add(self, descriptor: int, reader: Callable[[], object]) -> None:
        """Call ``reader`` again and again while there is something to be read."""
        if self._is_closed:
            self._loop.add_reader(descriptor, reader)
            return
        if self._set is None:
            assert _MAKE is not None
            self._set = _MAKE()
            self._loop.add_reader(self._set.fileno(), self._tell)
        if descriptor not in self._readers:
            self._set.register(descriptor, select.EPOLLIN)
        self._readers[descriptor] = reader

    def remove(self, descriptor: int) -> None:
        """Call no more."""
        if self._readers.pop(descriptor, None) is None:
            self._loop.remove_reader(descriptor)
        else:
            with suppress(OSError):  # closed already
                self._set.unregister(descriptor)

    def close(self) -> None:
        """Whoever is still there goes back to the loop."""
        self._is_closed = True
        readers, self._readers = self._readers, {}
        if self._set is not None:
            self._loop.remove_reader(self._set.fileno())
            self._set.close()
        for descriptor, reader in readers.items():
            self._loop.add_reader(descriptor, reader)

    def _tell(self) -> None:
        for descriptor, _ in self._set.poll(0, A_TURN):
            reader = self._readers.get(descriptor)
            if reader is not None:  # else another of these was the end of it
                reader()
