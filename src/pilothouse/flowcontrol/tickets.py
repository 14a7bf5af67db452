"""A request in a queue set, from its arrival until its seats are free again."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.work import SERVICE_UNITS, UNITS, Work

if TYPE_CHECKING:
    from pilothouse.flowcontrol.flows import Flow
    from pilothouse.flowcontrol.queue_set import QueueSet


class Queue:
    """Requests that wait in the order of their arrival, and what is known about those that came from here."""

    __slots__ = (
        "begun",
        "executing",
        "index",
        "next_dispatch",
        "running_seats",
        "seats",
        "units",
        "waiting",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Ticket] = deque()
        self.executing: dict[Ticket, None] = {}
        self.units = 0
        """The work of those that wait."""
        self.seats = 0
        """Taken by those that execute, or have executed and still take them."""
        self.next_dispatch = 0
        """The virtual time at which the next request would begin if all queues were served at the same pace."""

        self.running_seats = 0
        """The seats of those that execute."""
        self.begun = 0.0
        """The sum of when those that execute began, each times its seats."""

    def overrun(self, now: float) -> int:
        """By how much those that execute have exceeded their estimates already."""
        return max(0, int((now * self.running_seats - self.begun) * UNITS) - self.running_seats * SERVICE_UNITS)

    def run(self, ticket: Ticket, change: int) -> None:
        """One more or one less executes."""
        seats = change * ticket.work.initial_seats
        self.running_seats += seats
        self.begun += seats * ticket.started

    @property
    def is_active(self) -> bool:
        """Whether a request waits or executes."""
        return bool(self.waiting or self.executing)


class Queues(dict[int, Queue]):
    """The queues of a set by their index, each made when somebody first looks at it: there may be millions."""

    def __missing__(self, index: int) -> Queue:
        made = self[index] = Queue(index)
        return made


class Ticket:
    """One request. It executes at once, or its ``turn`` is a future: True when it may execute, False if it may not.

    Whoever executes has seats, which are given back with ``release``.
    """

    # Most tickets never differ from these.
    arrived_virtually = 0
    queue: Queue | None = None
    turn: asyncio.Future[bool] | None = None
    passing = False
    """It passes one that is wider and has to wait."""
    _over = False

    def __init__(self, queue_set: QueueSet, flow: Flow, work: Work, request: APIRequest, now: float, kind: int) -> None:
        self._set, self.flow, self.work, self.request, self.kind = queue_set, flow, work, request, kind
        self.arrived = self.started = now

    async def wait(self, until: float) -> bool:
        """Wait for the turn, but no longer than until a time of the loop. False: it did not come."""
        turn = self.turn
        if turn is None:
            return True
        timer = asyncio.get_running_loop().call_at(until, self._give_up)
        try:
            return await turn
        except asyncio.CancelledError:
            if self._is_executing:
                self.release()  # the turn came when the client had gone
            else:
                self._give_up()
            raise
        finally:
            timer.cancel()

    @property
    def _is_executing(self) -> bool:
        return self.queue is None or self in self.queue.executing

    def _give_up(self) -> None:
        if not self._over and not self._is_executing:
            self._over = True
            self._set.abandon(self)
            if self.turn is not None and not self.turn.done():
                self.turn.set_result(False)

    def release(self) -> None:
        """The request is served. Calling this again does nothing."""
        if not self._over:
            self._over = True
            self._set.finish(self)
