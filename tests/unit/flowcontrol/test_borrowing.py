"""Random levels with random demands: seats are lent within limits, none is lost, and everybody gets a turn."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apis.gates import default_gates
from pilothouse.endpoints.query import Query
from pilothouse.endpoints.request_info import resolve
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.tickets import Ticket
from pilothouse.machinery.user import User

QUEUES, LENGTH = 4, 40
INFO = resolve("POST", "/x", Query(""))
LEVELS = st.lists(
    st.tuples(st.integers(1, 50), st.integers(0, 100), st.none() | st.integers(0, 300)), min_size=1, max_size=4
)
"""Shares, percent that may be lent, percent that may be borrowed."""
DEMANDS = st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=1, max_size=5)
"""In each period, how many requests come to each level."""


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Request:
    """As much of a request as is looked at."""

    info = INFO

    def __init__(self, user: User) -> None:
        self.user = user


def level_object(name: str, shares: int, lendable: int, borrowing: int | None) -> dict[str, Any]:
    queuing = {"queues": QUEUES, "handSize": 1, "queueLengthLimit": LENGTH}
    limited: dict[str, Any] = {
        "nominalConcurrencyShares": shares,
        "lendablePercent": lendable,
        "limitResponse": {"type": "Queue", "queuing": queuing},
    }
    if borrowing is not None:
        limited["borrowingLimitPercent"] = borrowing
    return {"metadata": {"name": name, "uid": name}, "spec": {"type": "Limited", "limited": limited}}


def schema_object(name: str) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": name}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": 100,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [rule],
    }
    return {"metadata": {"name": name, "uid": f"schema-{name}"}, "spec": spec}


class Trial:
    """A controller, its clock, and the requests that are under way."""

    def __init__(self, seats: int, levels: list[tuple[int, int, int | None]]) -> None:
        self.clock = Clock()
        self.controller = FlowController(seats, lambda group, resource: None, default_gates(), self.clock)
        self.names = [f"level-{number}" for number in range(len(levels))]
        self.controller.configure(
            [level_object(name, *numbers) for name, numbers in zip(self.names, levels, strict=True)],
            [schema_object(name) for name in self.names],
        )
        self.under_way: list[Ticket] = []

    def ask(self, name: str, number: int) -> None:
        user = User(name)
        for _ in range(number):
            request: Any = Request(user)
            ticket = self.controller.start(self.controller.classify(user, INFO), request)
            if ticket is not None:
                self.under_way.append(ticket)

    async def work(self, seconds: float) -> int:
        """Let time pass, and whoever executes finish; how many did."""
        self.clock.now += seconds
        await asyncio.sleep(0)
        done = [ticket for ticket in self.under_way if _executes(ticket)]
        for ticket in done:
            ticket.release()
        self.under_way = [ticket for ticket in self.under_way if ticket not in done]
        await asyncio.sleep(0)
        return len(done)

    def check(self) -> None:
        levels = self.controller.levels.values()
        for level in levels:
            if not level.spec.exempt:
                assert level.lower <= level.current <= max(level.upper, level.lower)
        lent = sum(level.current for level in levels if not level.spec.exempt)
        # Each level's seats are rounded up when they are shared out, and once more when they are lent.
        assert lent <= self.controller.seats + 2 * len(self.controller.levels)


def _executes(ticket: Ticket) -> bool:
    turn = ticket.turn
    return turn is None or (turn.done() and not turn.cancelled() and turn.result())


@settings(max_examples=40)
@given(st.integers(4, 200), LEVELS, DEMANDS)
def test_seats_are_lent_within_limits_and_nobody_starves(
    seats: int, levels: list[tuple[int, int, int | None]], demands: list[list[int]]
) -> None:
    asyncio.run(_try(seats, levels, demands))


async def _try(seats: int, levels: list[tuple[int, int, int | None]], demands: list[list[int]]) -> None:
    trial = Trial(seats, levels)
    for demand in demands:
        for name, number in zip(trial.names, demand, strict=False):
            trial.ask(name, number)
        await trial.work(10.0)
        trial.controller.adjust()
        trial.check()
    idle = 0
    while trial.under_way:
        idle = 0 if await trial.work(0.01) else idle + 1
        # A level that has lent all its seats has some again after an adjustment; more than that nobody waits for.
        if idle:
            trial.controller.adjust()
        assert idle < 3, "requests wait, and nobody works"
    for level in trial.controller.levels.values():
        assert level.queues.executing == level.queues.waiting == 0
