"""Connections of clients that have not shown who they are: how many there may be, and who goes when there are more.

Anybody can open connections and say nothing. So strangers are few enough for the process, and a further one is never
turned away: another goes for it, the oldest of the address that has most of them. Whoever fills the server with silent
connections loses their own; a client that comes to ask something has asked before it is the oldest. Those who are
authenticated are no strangers any more and are left alone.

    strangers: a a a b a c        a further one of c: the first a goes
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_LOOKED_AT: Final = 16
_SHARE: Final = 4  # what part of the descriptors of this process one kind of strangers may take


class Strangers(Generic[T]):
    """Those of one kind, by address, oldest first."""

    __slots__ = ("_addresses", "_limit", "_most", "_of", "_sizes")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._of: dict[T, str] = {}
        self._addresses: dict[str, dict[T, None]] = {}
        self._sizes: dict[int, dict[str, None]] = {}  # addresses by how many they have
        self._most = 0

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[T]:
        return iter(self._of)

    def add(self, stranger: T, address: str) -> None:
        """One more."""
        address = network_of(address)
        self._of[stranger] = address
        ones = self._addresses.setdefault(address, {})
        ones[stranger] = None
        self._resize(address, len(ones) - 1, len(ones))

    def discard(self, stranger: T) -> None:
        """It is none any more."""
        address = self._of.pop(stranger, None)
        if address is not None:
            ones = self._addresses[address]
            del ones[stranger]
            self._resize(address, len(ones) + 1, len(ones))
            if not ones:
                del self._addresses[address]

    def surplus(self, idle: Callable[[T], bool] | None = None) -> T | None:
        """Who has to go before one more can be added."""
        return self.oldest(idle) if len(self._of) >= self._limit else None

    def oldest(self, idle: Callable[[T], bool] | None = None) -> T | None:
        """Who would go first: one that is ``idle``, if there is such a one among the oldest."""
        if not self._of:
            return None
        ones = self._largest()
        if idle is not None:
            for _, one in zip(range(_LOOKED_AT), ones, strict=False):
                if idle(one):
                    return one
        return next(iter(ones))

    def latest_surplus(self) -> T | None:
        """Who has to go before one more can be added, where those who came first are to stay."""
        return next(reversed(self._largest())) if self._of and len(self._of) >= self._limit else None

    def _largest(self) -> dict[T, None]:
        return self._addresses[next(iter(self._sizes[self._most]))]

    def _resize(self, address: str, before: int, after: int) -> None:
        if before:
            same = self._sizes[before]
            del same[address]
            if not same:
                del self._sizes[before]
        if after:
            self._sizes.setdefault(after, {})[address] = None
        if after > self._most or self._most not in self._sizes:
            self._most = after


def network_of(address: str) -> str:
    """Who has one address of IPv6 has as many as they like: they count by their network."""
    return ":".join(address.split(":")[:4]) if ":" in address else address


def affordable(limit: int) -> int:
    """As many of ``limit`` as the descriptors of this process allow for."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if descriptors == resource.RLIM_INFINITY else max(1, min(limit, descriptors // _SHARE))


def raise_descriptor_limit() -> None:
    """Let this process have as many descriptors as it may, as programs in Go do by themselves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # some systems promise more than they allow
            return
