"""The calls of many clients are begun a few at a time, and others get their turn in between."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pilothouse.controllers.runtime.call_turns import CallTurns
from pilothouse.net.work_turns import PLACES, work_turns


def call_of(number: int, namespace: str = "a") -> Any:
    return SimpleNamespace(number=number, path=f"/api/v1/namespaces/{namespace}/pods/x")


async def test_calls_about_namespaces_take_turns() -> None:
    seen: list[int] = []

    async def handle(request: Any) -> None:
        seen.append(request.number)

    turns = CallTurns(handle)
    many = [asyncio.ensure_future(turns(call_of(number))) for number in range(20 * PLACES)]
    await asyncio.sleep(0)
    await turns(call_of(-1, "b"))
    assert len(seen) <= 3 * PLACES
    await asyncio.gather(*many)


async def test_calls_of_all_clients_share_the_places_of_a_turn_with_work() -> None:
    seen: list[Any] = []

    async def handle(request: Any) -> Any:
        seen.append(request.number)
        return request.number

    async def work(number: int) -> None:
        await work_turns().take()
        seen.append(number)

    clients: list[Any] = [CallTurns(handle) for _ in range(3)]
    asked = [asyncio.ensure_future(clients[number % 3](call_of(number))) for number in range(4 * PLACES)]
    worked = [asyncio.ensure_future(work(number)) for number in range(4 * PLACES, 6 * PLACES)]
    most = 0
    while len(seen) < 6 * PLACES:
        before = len(seen)
        await asyncio.sleep(0)
        most = max(most, len(seen) - before)
    assert most <= PLACES
    assert sorted(seen) == list(range(6 * PLACES))
    assert [number for number in seen if number < 4 * PLACES] == list(range(4 * PLACES))
    assert [number for number in seen if number >= 4 * PLACES] == list(range(4 * PLACES, 6 * PLACES))
    assert await asyncio.gather(*asked) == list(range(4 * PLACES))
    await asyncio.gather(*worked)
