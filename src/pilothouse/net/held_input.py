"""What requests that are not complete yet keep in memory, and who gives way when that is too much.

A head or a body of some megabytes is kept until its end has come, and a client may take a minute to send it. A thousand
that do would fill the memory, whoever they are. So all of it together has a bound, and whoever begins to send is never
turned away: another gives way, of the address that holds most the one that has taken longest. A client that means it
has sent its body before it is that. Bodies that are complete are counted until their request is served, and stay.

    held: a1 a2 a3 b1 a4        too much: a1 gives way

What is short is not counted: that takes no longer than a connection itself.
"""

from __future__ import annotations

from typing import Final, Protocol

from pilothouse.net.strangers import network_of

FREE_BYTES: Final = 16 * 1024
"""What a connection or a body may keep without being counted."""
MOST_BYTES: Final = 128 << 20


class Holder(Protocol):
    """A body or a connection."""

    def give_way(self) -> None:
        """Let go of all input, now, and take no more."""


class HeldInput:
    """Who holds how much, those who began first at the front."""

    __slots__ = ("_limit", "_of", "_sizes", "total")

    def __init__(self, limit: int = MOST_BYTES) -> None:
        self._limit = limit
        self._of: dict[Holder, str] = {}
        """The addresses of those who wait for more."""
        self._sizes: dict[Holder, int] = {}
        """Of all, those who are complete too."""
        self.total = 0

    def hold(self, holder: Holder, address: str, size: int) -> None:
        """It holds so much by now; others give way if that is too much, or it does itself."""
        if holder not in self._sizes:
            self._of[holder] = network_of(address)
        self.total += size - self._sizes.get(holder, 0)
        self._sizes[holder] = size
        while self.total > self._limit and self._of:
            slowest = self._slowest()
            self.release(slowest)
            slowest.give_way()

    def complete(self, holder: Holder) -> None:
        """It waits for no more, and is left alone."""
        self._of.pop(holder, None)

    def release(self, holder: Holder) -> None:
        """It holds nothing any more."""
        self._of.pop(holder, None)
        self.total -= self._sizes.pop(holder, 0)

    def _slowest(self) -> Holder:
        held: dict[str, int] = {}
        for holder, address in self._of.items():
            held[address] = held.get(address, 0) + self._sizes[holder]
        most = max(held, key=held.__getitem__)
        return next(holder for holder, address in self._of.items() if address == most)
