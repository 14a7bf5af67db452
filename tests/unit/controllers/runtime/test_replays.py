"""Who comes late hears of each object once, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.net.working_clock import Clock

from pilothouse.controllers.runtime.index_gate import IndexGate
from pilothouse.controllers.runtime.indexer import Key
from pilothouse.controllers.runtime.replays import A_TURN, Knowledge, Replays
from pilothouse.net.work_turns import PLACES, SECONDS

Steps = list[tuple[str, int]]
_STEPS = st.lists(st.tuples(st.sampled_from(["put", "remove", "turn"]), st.integers(0, 2 * A_TURN)), max_size=30)


def key_of(number: int) -> Key:
    """In one of a few namespaces."""
    return f"space-{number % 3}", str(number)


class World:
    """Objects, and latecomers that note what they believe there is."""

    def __init__(self, count: int, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.objects: dict[Key, dict[str, Any]] = {key_of(number): {"state": 0} for number in range(count)}
        self.gate = IndexGate()
        self.replays = Replays(self, self.objects.get, self.gate, clock)
        self.believed: dict[str, dict[Key, int]] = {}
        self.over: list[str] = []

    def namespaces(self) -> list[str]:
        return sorted({namespace for namespace, _ in self.objects})

    def names(self, namespace: str) -> list[str]:
        return [name for where, name in self.objects if where == namespace]

    def come(self, who: str) -> None:
        self.believed[who] = {}
        self.replays.add(who, lambda key, obj: self._hear(who, key, None, obj), lambda: self.over.append(who))

    def change(self, key: Key, new: dict[str, Any] | None) -> None:
        old = self.objects.get(key)
        if new is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = new
        for who in self.believed:
            knowledge = self.replays.knows(who, key)
            if knowledge is Knowledge.KNOWN:
                self._hear(who, key, old, new)
            elif knowledge is Knowledge.NEW and new is not None:
                self._hear(who, key, None, new)

    def _hear(self, who: str, key: Key, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        believed = self.believed[who]
        assert believed.get(key) == (None if old is None else old["state"])
        if new is None:
            believed.pop(key, None)
        else:
            believed[key] = new["state"]

    async def settle(self) -> None:
        while self.replays:
            await asyncio.sleep(0)


@given(st.integers(0, 2 * A_TURN), _STEPS, st.booleans())
def test_nobody_misses_or_repeats_anything(count: int, steps: Steps, hurried: bool) -> None:
    async def run() -> None:
        world = World(count)
        world.come("first")
        world.come("second")
        for number, (what, which) in enumerate(steps):
            if what == "turn":
                await asyncio.sleep(0)
            else:
                world.change(key_of(which), None if what == "remove" else {"state": number + 1})
        if hurried:
            world.replays.hurry("second")
            assert len(world.believed["second"]) == len(world.objects)
        await world.settle()
        states = {key: obj["state"] for key, obj in world.objects.items()}
        assert world.believed == {"first": states, "second": states}
        assert world.over == ["first", "second"]

    asyncio.run(run())


async def told_in_turns(world: World) -> list[int]:
    """Of how many objects each turn has told somebody."""
    told = []
    while world.replays:
        before = sum(map(len, world.believed.values()))
        await asyncio.sleep(0)
        told.append(sum(map(len, world.believed.values())) - before)
    return [each for each in told if each]


async def test_some_are_told_of_in_each_turn() -> None:
    world = World(3 * A_TURN)
    world.come("one")
    world.come("other")
    assert await told_in_turns(world) == [A_TURN] * 6


async def test_of_objects_that_take_long_fewer_are_told_of_in_a_turn() -> None:
    clock = Clock()

    def tick() -> float:
        clock.now += SECONDS / 4
        return clock.now

    world = World(A_TURN, tick)
    world.come("one")
    assert max(await told_in_turns(world)) == 4


async def test_latecomers_of_many_informers_share_the_places_of_a_turn() -> None:
    worlds = [World(A_TURN) for _ in range(3 * PLACES)]
    for world in worlds:
        world.come("one")
    most = 0
    while any(world.replays for world in worlds):
        before = sum(len(world.believed["one"]) for world in worlds)
        await asyncio.sleep(0)
        most = max(most, sum(len(world.believed["one"]) for world in worlds) - before)
    assert 0 < most <= PLACES * A_TURN


async def test_one_who_has_gone_is_told_nothing_and_holds_up_nobody() -> None:
    world = World(A_TURN + 1)
    world.come("one")
    world.come("other")
    world.replays.drop("one")
    await world.settle()
    assert world.believed["one"] == {}
    assert len(world.believed["other"]) == A_TURN + 1
    assert world.over == ["other"]


async def test_an_object_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    heard, over = [], []

    def tell(key: Key, obj: object) -> None:
        if key[1] == "1":
            raise ValueError("odd")
        heard.append(key[1])

    world = World(3)
    with caplog.at_level(logging.ERROR):
        world.replays.add("one", tell, lambda: over.append(True))
        await world.settle()
    assert (heard, over) == (["0", "2"], [True])
    assert "cannot tell of space-1/1" in caplog.text


async def test_indexes_come_first_and_handlers_wait_for_those_of_others() -> None:
    world = World(A_TURN)
    world.gate.close()
    world.come("handler")
    index: list[Key] = []
    world.replays.prepare("index", lambda key, obj: index.append(key), lambda: world.over.append("index"))
    while not world.over:
        await asyncio.sleep(0)
    assert (len(index), world.over, world.believed["handler"]) == (A_TURN, ["index"], {})
    gone, changed = key_of(0), key_of(1)
    world.change(gone, None)
    world.change(changed, {"state": 7})
    assert world.believed["handler"] == {}
    world.gate.open()
    await world.settle()
    assert gone not in world.believed["handler"]
    assert (world.believed["handler"][changed], len(world.believed["handler"])) == (7, A_TURN - 1)
