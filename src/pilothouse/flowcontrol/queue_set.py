"""The queues of one priority level: who is served next, and how many at a time.

Fair queueing for requests. Virtual time advances by what each active queue gets on average: seats in use, divided by
active queues. (kube-apiserver advances it by what they could get. That runs ahead of what they do get whenever seats
stay free for a wide request, and whoever comes later then waits as long as those who came first.) A queue knows at
which virtual time its next request would begin; of all queues with someone waiting, the one is next whose first request
would *end* first, by the estimates:

    queue   next_dispatch   first request's work   would end
    a            10                  3                13     ◄ next; a.next_dispatch becomes 13
    b            12                  3                15
    c             9                 30                39       heavy flows wait longer

When a request ends, the queue's next_dispatch is corrected by what it took less or more than estimated; by how much
those that execute have exceeded their estimates counts already. It never lies before the arrival of the queue's first
request, so that nobody saves up turns.

If the request whose turn it is needs more seats than are free, it must wait. An eighth of the seats is not for wide
requests (more than one seat): by so many, narrow ones pass a wide one that waits, and by no more, or it would starve.
A level without queues serves or refuses; an exempt one serves.

Guarantees: seats in use never exceed the limit, but for one request that alone is wider than it; every ticket that was
given is finished or abandoned once; what waits is served as soon as seats are free.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.flows import Flow
from pilothouse.flowcontrol.occupancy import NARROW_STATES, Occupancy, State
from pilothouse.flowcontrol.pacing import TurnBudget
from pilothouse.flowcontrol.tickets import Queue, Queues, Ticket
from pilothouse.flowcontrol.traffic import READ, WAITING, Traffic
from pilothouse.flowcontrol.work import ONE_SEAT, SERVICE_UNITS, UNITS, Work

_RESERVED_PART: Final = 8
Later = Callable[[float, Callable[[], None]], object]
"""Calls something after so many seconds."""


class Queuing(NamedTuple):
    """How a level queues; ``queues`` is 0 where it does not."""

    queues: int = 0
    hand_size: int = 0
    length_limit: int = 0


class Bounds(NamedTuple):
    """What the last dispatch saw: the smallest and the largest start of waiting requests, and with work discounted."""

    now: int
    dispatched: int
    least: int
    most: int
    least_discounted: int
    most_discounted: int


class Totals:
    """What happened since the level exists."""

    __slots__ = ("cancelled", "dispatched", "rejected")

    def __init__(self) -> None:
        self.dispatched = self.rejected = self.cancelled = 0


class QueueSet:
    """See the module's docstring. Times are seconds of ``clock``; virtual times and work are whole units."""

    def __init__(
        self,
        budget: TurnBudget,
        occupancy: Occupancy,
        traffic: Traffic,
        later: Later,
        *,
        exempt: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.exempt = exempt
        self.limit = 0
        self.queuing = Queuing()
        self.queues = Queues()
        self.queue_count = 0
        self.queueless: dict[Ticket, None] = {}
        """Those that execute without having been in a queue."""
        self.executing = self.seats = self.waiting = self.seats_waiting = 0
        self.totals = Totals()
        self.virtual_time = 0
        self._active = 0
        self._nonempty: dict[Queue, None] = {}
        self._dealt = 0
        self._robin = 0
        self._passing = 0
        self._last: tuple[int, int, int] | None = None
        self._bounds: Bounds | None = None
        self._budget, self._occupancy, self._traffic = budget, occupancy, traffic
        self._later, self._clock = later, clock
        self._narrow = occupancy.narrow
        self._noted = clock()

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits or executes."""
        return not (self.waiting or self.executing)

    @property
    def state(self) -> State:
        """How much goes on."""
        return self.executing, self.seats, self.waiting, self.seats_waiting

    def configure(self, queuing: Queuing, limit: int) -> None:
        """Other queues or another limit. Queues that are too many go when they are empty."""
        self.catch_up()
        self.queuing, self.limit = queuing, limit
        self._drop_spare_queues()
        self.dispatch_waiting()

    def catch_up(self) -> float:
        """Let virtual time and statistics reach the present, before anything changes."""
        now = self._clock()
        passed = now - self._noted
        self._noted = now
        executing, seats, waiting = self.executing, self.seats, self.waiting
        if executing == seats and not waiting and executing < NARROW_STATES:
            self._narrow[executing] += passed
        else:
            self._occupancy.note((executing, seats, waiting, self.seats_waiting), passed)
        if self._active:
            self.virtual_time += int(seats * passed * UNITS / self._active)
        return now

    # Passing through

    def has_room(self) -> bool:
        """Whether a request of one seat would execute at once."""
        return not self.waiting and (self.seats < self.limit or self.exempt)

    def pass_through(self, flow: Flow, started: float, ended: float) -> None:
        """A read of one seat was served while nothing else happened: it came, found room, and went.

        What is served from memory never shares the loop. Its ticket would be seen by nobody, so it gets none.
        """
        executing, seats = self.executing, self.seats
        seconds = ended - started
        if executing == seats and not self.waiting and executing < NARROW_STATES - 1:
            self._narrow[executing] += started - self._noted
            self._narrow[executing + 1] += seconds
        else:
            state = self.state
            self._occupancy.note(state, started - self._noted)
            self._occupancy.note((state[0] + 1, state[1] + 1, state[2], state[3]), seconds)
        series = flow.series
        if flow.hand:
            series.at_once_from_queues += 1
            if self._active:
                self._advance(self._choose(flow.hand), started, seconds)
            else:  # its queue was idle and is so again: it begins anew whenever somebody comes
                self.virtual_time += int(seconds * UNITS)
        else:
            series.at_once += 1
        self._noted = ended
        self.totals.dispatched += 1
        series.dispatched += 1
        series.regular.observe(seconds)
        self._traffic.pass_through(READ, started, ended)

    def take(self, flow: Flow, request: APIRequest) -> Ticket:
        """A ticket for a read that there was room for when it began, and which did not pass through."""
        ticket = Ticket(self, flow, ONE_SEAT, request, self.catch_up(), READ)
        if flow.hand:
            flow.series.at_once_from_queues += 1
            self._dispatch_at_once(ticket, flow.hand)
        else:
            flow.series.at_once += 1
            self.queueless[ticket] = None
            self._execute(ticket, 1)
        return ticket

    def _dispatch_at_once(self, ticket: Ticket, hand: tuple[int, ...]) -> None:
        queue = self._choose(hand)
        self._activate(queue)
        self._dispatch(ticket, queue)

    def _advance(self, queue: Queue, started: float, seconds: float) -> None:
        """Let virtual time pass until a request began and while it was served, and charge its queue."""
        active = self._active
        self.virtual_time += int(self.seats * (started - self._noted) * UNITS / active)
        if queue.is_active:
            queue.next_dispatch += int(seconds * UNITS)
        else:
            active += 1
        self.virtual_time += int((self.seats + 1) * seconds * UNITS / active)

    # Arriving

    def start(self, flow: Flow, work: Work, request: APIRequest, kind: int = READ) -> Ticket | None:
        """A ticket for a request, which may execute already; None where there is no room even to wait."""
        now = self.catch_up()
        ticket = Ticket(self, flow, work, request, now, kind)
        if not flow.hand:
            return self._start_without_queue(ticket, flow, work.seats)
        queue = self._choose(flow.hand)
        seats = work.seats
        if not self.waiting and self.seats < self.limit and (seats == 1 or self._may_start_wide(seats)):
            if seats == 1:
                flow.series.at_once_from_queues += 1
            else:
                flow.series.start_wide(seats)
                flow.series.queue_length.observe(1)
            self._activate(queue)
            self._dispatch(ticket, queue)
            return ticket
        if self.seats >= self.limit and len(queue.waiting) >= self.queuing.length_limit:
            self._refuse(flow, seats, "queue-full")
            return None
        self._enqueue(ticket, queue)
        self.dispatch_waiting()
        return ticket

    def _start_without_queue(self, ticket: Ticket, flow: Flow, seats: int) -> Ticket | None:
        if not self.exempt and not self._fits(seats):
            self._refuse(flow, seats, "concurrency-limit")
            return None
        if seats == 1:
            flow.series.at_once += 1
        else:
            flow.series.start_wide(seats)
        self.queueless[ticket] = None
        self._execute(ticket, seats)
        return ticket

    def _may_start_wide(self, seats: int) -> bool:
        return self._fits(seats) and self._is_in_pace(seats)

    def _choose(self, hand: tuple[int, ...]) -> Queue:
        """The queue with the least work waiting; where several have as little, they take turns."""
        size = len(hand)
        first = self._dealt % size
        self._dealt += 1
        best = self.queues[hand[first]]
        if self._nonempty and best.units:
            for step in range(1, size):
                queue = self.queues[hand[(first + step) % size]]
                if queue.units < best.units:
                    best = queue
        return best

    def _refuse(self, flow: Flow, seats: int, reason: str) -> None:
        self.totals.rejected += 1
        flow.series.reject_at_once(reason, seats)

    def _enqueue(self, ticket: Ticket, queue: Queue) -> None:
        self._activate(queue)
        ticket.queue, ticket.arrived_virtually = queue, self.virtual_time
        ticket.turn = asyncio.get_running_loop().create_future()
        queue.waiting.append(ticket)
        queue.units += ticket.work.units
        self._nonempty[queue] = None
        self._count_waiting(ticket, 1)
        series = ticket.flow.series
        series.estimated_seats.observe(ticket.work.seats)
        series.queue_length.observe(len(queue.waiting))
        self._bound(queue)

    def _activate(self, queue: Queue) -> None:
        if not (queue.executing or queue.waiting):
            queue.next_dispatch = self.virtual_time
            self._active += 1

    def _count_waiting(self, ticket: Ticket, change: int) -> None:
        seats = change * ticket.work.seats
        self._traffic.add(WAITING + ticket.kind, change, self._noted)
        self.waiting += change
        self.seats_waiting += seats
        series = ticket.flow.series
        series.waiting += change
        series.seats_waiting += seats

    # Dispatching

    def dispatch_waiting(self) -> None:
        """Serve as many of those that wait as can be served now."""
        while self.waiting and self.seats < self.limit:
            queue = self._next_queue()
            ticket = queue.waiting[0]
            if not self._fits(ticket.work.seats):
                ticket.flow.series.unaccommodated += 1
                self._let_pass()
                return
            if not self._is_in_pace(ticket.work.seats):
                self._let_pass()
                return
            self._serve(ticket, queue)

    def _let_pass(self) -> None:
        """Serve narrow requests while a wide one is next and must wait, by a small part of the seats."""
        while self._passing < self._reserved and self.seats < self.limit:
            narrow = [queue for queue in self._nonempty if queue.waiting[0].work.seats == 1]
            if not narrow:
                return
            queue = min(narrow, key=self._rank)
            queue.waiting[0].passing = True
            self._passing += 1
            self._serve(queue.waiting[0], queue)

    def _serve(self, ticket: Ticket, queue: Queue) -> None:
        self._take_out(ticket, queue)
        self._dispatch(ticket, queue)
        if ticket.turn is not None and not ticket.turn.done():
            ticket.turn.set_result(True)

    def resume(self) -> None:
        """Try again, in another turn of the loop."""
        self.catch_up()
        self.dispatch_waiting()

    def _next_queue(self) -> Queue:
        """The queue whose first request would end first; of several the next after the one served last."""
        return min(self._nonempty, key=self._rank)

    def _rank(self, queue: Queue) -> tuple[int, int]:
        end = queue.next_dispatch + queue.overrun(self._noted) + queue.waiting[0].work.units
        return end, (queue.index - self._robin - 1) % self.queue_count

    def _fits(self, seats: int) -> bool:
        limit = self.limit if seats == 1 or not self.queuing.queues else self.limit - self._reserved
        return self.seats + seats <= limit or (seats > limit and not self.executing)

    @property
    def _reserved(self) -> int:
        return self.limit // _RESERVED_PART

    def _is_in_pace(self, seats: int) -> bool:
        return seats == 1 or self._budget.spend(seats, self)

    def _take_out(self, ticket: Ticket, queue: Queue) -> None:
        queue.waiting.remove(ticket)
        queue.units -= ticket.work.units
        if not queue.waiting:
            del self._nonempty[queue]
        self._count_waiting(ticket, -1)

    def _dispatch(self, ticket: Ticket, queue: Queue) -> None:
        if ticket.work.final_seats > self.limit:
            ticket.work = ticket.work.narrowed(self.limit)
        ticket.queue, ticket.started = queue, self._noted
        self._robin = queue.index
        start = queue.next_dispatch
        if self._nonempty:
            self._bounds = self._present_bounds(start)
        else:
            self._bounds = None
            self._last = start, self.virtual_time, queue.seats
        queue.executing[ticket] = None
        queue.run(ticket, 1)
        work = ticket.work
        queue.seats += work.seats
        queue.next_dispatch = start + work.units
        self._execute(ticket, work.seats)
        if queue.waiting:
            self._bound(queue)

    @property
    def bounds(self) -> Bounds | None:
        """What the last dispatch saw; None before the first."""
        if self._bounds is None and self._last is not None:
            start, now, seats = self._last
            discounted = start - seats * SERVICE_UNITS
            return Bounds(now, start, start, start, discounted, discounted)
        return self._bounds

    def _present_bounds(self, dispatched: int) -> Bounds:
        starts = [queue.next_dispatch for queue in self._nonempty]
        discounted = [queue.next_dispatch - queue.seats * SERVICE_UNITS for queue in self._nonempty]
        return Bounds(self.virtual_time, dispatched, min(starts), max(starts), min(discounted), max(discounted))

    def _execute(self, ticket: Ticket, seats: int) -> None:
        self._traffic.add(ticket.kind, 1, self._noted)
        self.executing += 1
        self.seats += seats
        self.totals.dispatched += 1
        series = ticket.flow.series
        series.executing += 1
        series.seats += seats
        series.dispatched += 1

    def _bound(self, queue: Queue) -> None:
        queue.next_dispatch = max(queue.next_dispatch, queue.waiting[0].arrived_virtually)

    # Leaving

    def abandon(self, ticket: Ticket) -> None:
        """It waited for too long, or its client has gone."""
        self.catch_up()
        queue = ticket.queue
        if queue is None:
            return
        self._take_out(ticket, queue)
        self.totals.rejected += 1
        self.totals.cancelled += 1
        ticket.flow.series.reject("time-out")
        self._settle(queue)
        self.dispatch_waiting()

    def finish(self, ticket: Ticket) -> None:
        """It is served. Its seats are free now, or when the work that it leaves behind is done."""
        now = self.catch_up()
        self.executing -= 1
        series, queue, work = ticket.flow.series, ticket.queue, ticket.work
        series.executing -= 1
        self._traffic.add(ticket.kind, -1, now)
        seconds = now - ticket.started
        (series.watch if ticket.request.info.verb == "watch" else series.regular).observe(seconds)
        if queue is None:
            del self.queueless[ticket]
        else:
            del queue.executing[ticket]
            queue.run(ticket, -1)
            if ticket.passing:
                self._passing -= 1
            queue.next_dispatch -= work.initial_seats * (SERVICE_UNITS - int(seconds * UNITS))
            self._settle(queue)
        if work.final_seconds > 0:
            self._later(work.final_seconds, lambda: self._free_later(ticket))
        elif queue is None:
            self.seats -= work.seats
            series.seats -= work.seats
        else:
            self._free(ticket)
        if self.waiting:
            self.dispatch_waiting()

    def _free_later(self, ticket: Ticket) -> None:
        self.catch_up()
        self._free(ticket)
        self.dispatch_waiting()

    def _free(self, ticket: Ticket) -> None:
        seats = ticket.work.seats
        self.seats -= seats
        ticket.flow.series.seats -= seats
        if ticket.queue is not None:
            ticket.queue.seats -= seats

    def _settle(self, queue: Queue) -> None:
        if queue.waiting:
            self._bound(queue)
        elif not queue.executing:
            self._active -= 1
            if self.queue_count > self.queuing.queues:
                self._drop_spare_queues()

    def _drop_spare_queues(self) -> None:
        wanted = self.queuing.queues
        self.queue_count = max([wanted, *(index + 1 for index, queue in self.queues.items() if queue.is_active)])
        for index in [index for index in self.queues if index >= self.queue_count]:
            del self.queues[index]
