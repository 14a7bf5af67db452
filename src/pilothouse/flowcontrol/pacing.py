"""What one turn of the event loop may begin.

A seat of kube-apiserver is a thread of work that runs beside others. Here a request that is answered from memory is
done before the next one is looked at: it never shares the loop, so that no limit on seats would ever make it wait,
and four hundred large lists that arrive together would be worked off one after the other before anybody else gets a
word in.

So wide requests (more than one seat) begin for no more than a few seats a turn. What is more waits in its queue, where
fairness decides who is next, and requests of one seat pass. The first wide request of a turn may always begin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

SEATS_A_TURN: Final = 10


class Held(Protocol):
    """Whoever could not begin."""

    def resume(self) -> None:
        """Try again."""


Soon = Callable[[Callable[[], None]], object]
"""Calls something in the next turn of the loop."""


class TurnBudget:
    """The seats that the present turn has left for wide requests."""

    __slots__ = ("_held", "_scheduled", "_served", "_soon", "_spent")

    def __init__(self, soon: Soon) -> None:
        self._soon = soon
        self._spent = 0
        self._served: set[Held] = set()
        self._scheduled = False
        self._held: dict[Held, None] = {}

    def spend(self, seats: int, asking: Held) -> bool:
        """Begin with so many seats in this turn; False: ``asking`` is told to try again in the next."""
        if self._spent and self._spent + seats > SEATS_A_TURN:
            self._held[asking] = None
            return False
        self._spent += seats
        self._served.add(asking)
        if not self._scheduled:
            self._scheduled = True
            self._soon(self._begin_turn)
        return True

    def _begin_turn(self) -> None:
        self._scheduled, self._spent = False, 0
        # Whoever had a share of the turn that ended comes after those that had none.
        held = sorted(self._held, key=self._served.__contains__)
        self._held, self._served = {}, set()
        for each in held:
            each.resume()
