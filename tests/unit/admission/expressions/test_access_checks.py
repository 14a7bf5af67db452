"""Many requests that ask policies about much share the turns of the loop."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.admission.expressions import access_checks
from pilothouse.admission.expressions.access_checks import AccessChecks
from pilothouse.machinery.user import User
from pilothouse.net.work_turns import WorkTurns


async def test_however_many_ask_much_others_get_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns, made, most = 0.0, 0, 0, 0

    def clock() -> float:
        return now

    def evaluate() -> None:
        """What takes longer than a place in a turn gives."""
        nonlocal now, made, most
        now += 0.0015
        made += 1
        most = max(most, made)

    async def somebody_else() -> None:
        nonlocal turns, made
        while True:
            turns, made = turns + 1, 0
            await asyncio.sleep(0)

    async def ask() -> None:
        checks = AccessChecks(None, User("u"))
        for _ in range(10):
            await checks.run(evaluate)

    shared = WorkTurns(asyncio.get_running_loop(), clock)
    monkeypatch.setattr(access_checks, "perf_counter", clock)
    monkeypatch.setattr(access_checks, "request_turns", lambda: shared)
    other = asyncio.ensure_future(somebody_else())
    await asyncio.gather(*(ask() for _ in range(50)))
    other.cancel()
    assert turns > 100
    assert most <= 60, "but for the first of each, which waits for nobody"
