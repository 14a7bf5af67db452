"""The queues of a level against a plain model, and what they promise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.flows import Flow, FlowHistograms, FlowSeries
from pilothouse.flowcontrol.occupancy import Demand, Occupancy
from pilothouse.flowcontrol.pacing import SEATS_A_TURN, TurnBudget
from pilothouse.flowcontrol.queue_set import QueueSet, Queuing
from pilothouse.flowcontrol.tickets import Ticket
from pilothouse.flowcontrol.traffic import Traffic
from pilothouse.flowcontrol.work import ONE_SEAT, SERVICE_UNITS, UNITS, Work

REQUEST = cast(APIRequest, SimpleNamespace(info=SimpleNamespace(verb="list")))
TICK = 1 / 1024  # times that add up exactly


@dataclass(eq=False)
class Asked:
    """One request."""

    queue: int
    seats: int
    arrived_virtually: int = 0
    started: float | None = None
    passing: bool = False


@dataclass
class Model:
    """What ``QueueSet`` should do, as plain as can be: every question is answered by looking at all requests."""

    limit: int
    queues: int
    now: float = 0.0
    virtual: int = 0
    noted: float = 0.0
    robin: int = 0
    spent: int = 0
    waiting: list[Asked] = field(default_factory=list)
    executing: list[Asked] = field(default_factory=list)
    next_dispatch: dict[int, int] = field(default_factory=dict)

    @property
    def seats(self) -> int:
        return sum(each.seats for each in self.executing)

    def _first(self, queue: int) -> Asked | None:
        return next((each for each in self.waiting if each.queue == queue), None)

    def _active(self) -> set[int]:
        return {each.queue for each in (*self.waiting, *self.executing)}

    def catch_up(self) -> None:
        if self._active():
            self.virtual += int(self.seats * (self.now - self.noted) * UNITS / len(self._active()))
        self.noted = self.now

    def arrive(self, asked: Asked) -> None:
        self.catch_up()
        if asked.queue not in self._active():
            self.next_dispatch[asked.queue] = self.virtual
        asked.arrived_virtually = self.virtual
        self.waiting.append(asked)
        self._bound()
        self.dispatch()

    def leave(self, asked: Asked) -> None:
        self.catch_up()
        if asked in self.waiting:
            self.waiting.remove(asked)
        else:
            assert asked.started is not None
            self.executing.remove(asked)
            took = int((self.now - asked.started) * UNITS)
            self.next_dispatch[asked.queue] -= asked.seats * (SERVICE_UNITS - took)
        self._bound()
        self.dispatch()

    def turn(self) -> None:
        self.spent = 0
        self.catch_up()
        self.dispatch()

    def _bound(self) -> None:
        for queue in self.next_dispatch:
            first = self._first(queue)
            if first is not None:
                self.next_dispatch[queue] = max(self.next_dispatch[queue], first.arrived_virtually)

    def _rank(self, asked: Asked) -> tuple[int, int]:
        running = [each for each in self.executing if each.queue == asked.queue and each.started is not None]
        taken = int(sum((self.now - (each.started or 0.0)) * each.seats for each in running) * UNITS)
        overrun = max(0, taken - sum(each.seats * SERVICE_UNITS for each in running))
        end = self.next_dispatch[asked.queue] + overrun + asked.seats * SERVICE_UNITS
        return end, (asked.queue - self.robin - 1) % self.queues

    def dispatch(self) -> None:
        reserved = self.limit // 8
        while self.waiting and self.seats < self.limit:
            heads = [first for queue in range(self.queues) if (first := self._first(queue)) is not None]
            best = min(heads, key=self._rank)
            room = self.limit if best.seats == 1 else self.limit - reserved
            fits = self.seats + best.seats <= room or (best.seats > room and not self.executing)
            paced = best.seats == 1 or not self.spent or self.spent + best.seats <= SEATS_A_TURN
            if fits and paced:
                if best.seats > 1:
                    self.spent += best.seats
                self._start(best)
                continue
            narrow = [head for head in heads if head.seats == 1]
            if not narrow or sum(each.passing for each in self.executing) >= reserved:
                return
            best = min(narrow, key=self._rank)
            best.passing = True
            self._start(best)

    def _start(self, asked: Asked) -> None:
        self.robin = asked.queue
        self.waiting.remove(asked)
        asked.started = self.now
        self.executing.append(asked)
        self.next_dispatch[asked.queue] += asked.seats * SERVICE_UNITS
        self._bound()


class Bench:
    """A queue set on a clock and a loop that the test moves."""

    def __init__(self, limit: int, queues: int, length: int = 50) -> None:
        self.now = 0.0
        self.soon: list[Callable[[], None]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.demand = Demand()
        self.occupancy = Occupancy((self.demand,))
        budget = TurnBudget(self.soon.append)
        traffic = Traffic(lambda: self.now)
        later = self.later
        self.set = QueueSet(budget, self.occupancy, traffic, lambda *call: later.append(call), clock=lambda: self.now)
        self.set.configure(Queuing(queues, 1, length), limit)
        self.series = FlowSeries(FlowHistograms(), "level", "schema")

    def flow(self, *hand: int) -> Flow:
        names: Any = SimpleNamespace(uid="", name="x")
        return Flow(names, names, "", hand, self.series)

    def arrive(self, queue: int, seats: int = 1) -> Ticket | None:
        return self.set.start(self.flow(queue), Work(seats), REQUEST)

    def turn(self) -> None:
        soon, self.soon[:] = list(self.soon), []
        for call in soon:
            call()


def is_executing(ticket: Ticket) -> bool:
    return ticket.queue is not None and ticket in ticket.queue.executing


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(0, 3), st.sampled_from([1, 1, 1, 2, 5, 10, 30])),
        st.tuples(st.just("finish"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("abandon"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 40), st.just(0)),
        st.tuples(st.just("turn"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=80, deadline=None)
@given(limit=st.integers(1, 40), operations=OPERATIONS)
def test_it_does_what_the_model_does(limit: int, operations: list[tuple[str, int, int]]) -> None:
    asyncio.run(_compare(limit, operations))


async def _compare(limit: int, operations: list[tuple[str, int, int]]) -> None:
    bench, model = Bench(limit, 4), Model(limit, 4)
    pairs: list[tuple[Ticket, Asked]] = []
    for what, number, seats in operations:
        if what == "arrive":
            ticket = bench.arrive(number, seats)
            assert ticket is not None
            asked = Asked(number, seats)
            model.arrive(asked)
            pairs.append((ticket, asked))
        elif what == "wait":
            bench.now = model.now = bench.now + number * TICK
            bench.set.catch_up()
            model.catch_up()
        elif what == "turn":
            if bench.soon:
                model.turn()
            bench.turn()
        else:
            among = [pair for pair in pairs if is_executing(pair[0]) == (what == "finish")]
            if not among:
                continue
            ticket, asked = among[number % len(among)]
            pairs.remove((ticket, asked))
            if what == "finish":
                ticket.release()
            else:
                ticket._give_up()
            model.leave(asked)
        assert [is_executing(ticket) for ticket, _ in pairs] == [asked in model.executing for _, asked in pairs]
        assert bench.set.seats == model.seats
        assert bench.set.virtual_time == model.virtual
        assert bench.set.seats <= max(limit, max((asked.seats for asked in model.executing), default=0))
    _drain(bench, [ticket for ticket, _ in pairs])


def _drain(bench: Bench, tickets: list[Ticket]) -> None:
    """Nothing starves: whoever waits is served when others leave; in the end every seat is free."""
    left = list(tickets)
    while left:
        bench.turn()
        running = [ticket for ticket in left if is_executing(ticket)]
        assert running, "nobody is served any more"
        running[0].release()
        left.remove(running[0])
    state = bench.set
    assert (state.executing, state.seats, state.waiting, state.seats_waiting) == (0, 0, 0, 0)
    assert (bench.series.executing, bench.series.seats, bench.series.waiting) == (0, 0, 0)
    assert not any(queue.is_active or queue.seats or queue.units for queue in state.queues.values())


async def test_a_light_flow_does_not_wait_for_a_heavy_one() -> None:
    bench = Bench(limit=16, queues=2, length=500)
    heavy = [bench.arrive(0, 8) for _ in range(200)]
    for _ in range(20):
        bench.turn()
    for _ in range(50):
        bench.now += 100 * TICK
        light = bench.arrive(1)
        assert light is not None
        assert is_executing(light)  # seats are kept for narrow requests
        bench.now += TICK
        light.release()
        running = next(ticket for ticket in heavy if ticket is not None and is_executing(ticket))
        running.release()
        heavy.remove(running)
        bench.turn()


async def test_two_heavy_flows_get_the_same_time_whatever_their_requests_take() -> None:
    bench = Bench(limit=10, queues=2, length=500)
    ticks = {0: 8, 1: 40}
    tickets = {queue: [bench.arrive(queue) for _ in range(400)] for queue in ticks}
    used = [0, 0]
    for _ in range(400):
        bench.now += TICK
        bench.set.catch_up()
        used = [before + bench.set.queues[queue].seats for queue, before in enumerate(used)]
        for queue, needed in ticks.items():
            for ticket in list(bench.set.queues[queue].executing):
                if bench.now - ticket.started >= needed * TICK:
                    ticket.release()
                    tickets[queue].remove(ticket)
    assert sum(used) == 10 * 400
    assert abs(used[0] - used[1]) <= 0.05 * sum(used)


async def test_a_wide_request_is_not_starved_by_narrow_ones() -> None:
    bench = Bench(limit=16, queues=2, length=500)
    narrow = [bench.arrive(0) for _ in range(40)]
    wide = bench.arrive(1, 12)
    assert wide is not None
    for _ in range(40):
        if is_executing(wide):
            break
        bench.now += TICK
        first = next(each for each in narrow if each is not None and is_executing(each))
        first.release()
        narrow.remove(first)
        narrow.append(bench.arrive(0))
        bench.turn()
    assert is_executing(wide)


async def test_a_full_queue_refuses() -> None:
    bench = Bench(limit=1, queues=1, length=2)
    assert [bench.arrive(0) is not None for _ in range(4)] == [True, True, True, False]
    assert bench.series.rejected == {"queue-full": 1}


async def test_without_queues_the_limit_refuses_and_exempt_never_does() -> None:
    bench = Bench(limit=2, queues=0)
    work = Work(1)
    answers = [bench.set.start(bench.flow(), work, REQUEST) is not None for _ in range(3)]
    assert answers == [True, True, False]
    assert bench.series.rejected == {"concurrency-limit": 1}
    bench.set.exempt = True
    assert bench.set.start(bench.flow(), Work(50), REQUEST) is not None


async def test_seats_stay_taken_for_the_work_that_is_left_behind() -> None:
    bench = Bench(limit=3, queues=1)
    ticket = bench.set.start(bench.flow(0), Work(1, 3, 0.25), REQUEST)
    assert ticket is not None
    ticket.release()
    assert (bench.set.executing, bench.set.seats) == (0, 3)
    ((seconds, free),) = bench.later
    assert seconds == 0.25
    free()
    assert bench.set.seats == 0


async def test_waiting_ends_with_the_time_the_turn_or_the_client() -> None:
    bench = Bench(limit=1, queues=1)
    first, second, third, fourth = (bench.arrive(0) for _ in range(4))
    assert first and second and third and fourth
    loop = asyncio.get_running_loop()
    assert not await second.wait(loop.time())
    assert bench.series.rejected == {"time-out": 1}
    waiting = asyncio.ensure_future(third.wait(loop.time() + 60))
    gone = asyncio.ensure_future(fourth.wait(loop.time() + 60))
    await asyncio.sleep(0)
    first.release()
    assert await waiting
    third.release()  # it is the fourth's turn, whose client goes before it hears of it
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert (bench.set.executing, bench.set.seats, bench.set.waiting) == (0, 0, 0)


async def test_more_and_fewer_queues_and_seats() -> None:
    bench = Bench(limit=1, queues=4)
    tickets = [bench.arrive(3) for _ in range(3)]
    bench.set.configure(Queuing(2, 1, 50), 1)
    assert bench.set.queue_count == 4  # until the last has been served
    bench.set.configure(Queuing(2, 1, 50), 5)
    for ticket in tickets:
        assert ticket is not None
        assert is_executing(ticket)
        ticket.release()
    assert bench.set.queue_count == 2


async def test_demand_is_what_could_have_been_used() -> None:
    bench = Bench(limit=1, queues=1)
    tickets = [bench.arrive(0) for _ in range(3)]
    bench.now += 1.0
    for ticket in tickets:
        assert ticket is not None
        ticket.release()
    bench.now += 1.0
    bench.set.catch_up()
    bench.occupancy.fold()
    bench.demand.end_period(bench.set.state, 0.977)
    assert (bench.demand.high_watermark, bench.demand.average, bench.demand.deviation) == (3, 1.5, 1.5)
    assert bench.demand.smoothed == 3.0


@pytest.mark.parametrize("busy", [0, 1, 3])
async def test_what_passes_through_leaves_what_a_ticket_would_leave(busy: int) -> None:
    """Whether a read had a ticket or not cannot be told afterwards."""

    def after(serve: Callable[[Bench], None]) -> tuple[Any, ...]:
        bench = Bench(limit=8, queues=2)
        for _ in range(busy):
            bench.arrive(0)
        bench.now += TICK
        serve(bench)
        bench.occupancy.fold()
        bench.demand.end_period(bench.set.state, 0.5)
        bench.series.fold()
        counts = bench.series.dispatched, bench.series.queue_length.count, bench.series.waited.count
        demand = bench.demand.high_watermark, round(bench.demand.average, 9), round(bench.demand.deviation, 9)
        return counts, demand, bench.set.virtual_time, bench.set.queues[0].next_dispatch if busy else 0, bench.set.state

    def with_ticket(bench: Bench) -> None:
        ticket = bench.set.start(bench.flow(0), ONE_SEAT, REQUEST)
        assert ticket is not None
        bench.now += TICK
        ticket.release()

    def passing(bench: Bench) -> None:
        assert bench.set.has_room()
        started, bench.now = bench.now, bench.now + TICK
        bench.set.pass_through(bench.flow(0), started, bench.now)

    assert after(passing) == after(with_ticket)


async def test_millions_of_queues() -> None:
    """Only those are there in which somebody was, and they go when they are too many."""
    bench = Bench(limit=2, queues=50_000_000)
    tickets = [bench.arrive(index) for index in (7, 49_999_999)]
    assert sorted(bench.set.queues) == [7, 49_999_999]
    bench.set.configure(Queuing(8, 1, 50), 2)
    assert bench.set.queue_count == 50_000_000
    for ticket in tickets:
        assert ticket is not None
        ticket.release()
    bench.turn()
    assert (bench.set.queue_count, sorted(bench.set.queues)) == (8, [7])
