"""Who comes late hears of each object once, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.runtime.indexer import Key
from pilothouse.controllers.runtime.replays import A_TURN, Replays

Steps = list[tuple[str, int]]
_STEPS = st.lists(st.tuples(st.sampled_from(["put", "remove", "turn"]), st.integers(0, 2 * A_TURN)), max_size=30)


class World:
    """Objects, and latecomers that note what they believe there is."""

    def __init__(self, count: int) -> None:
        self.objects: dict[Key, dict[str, Any]] = {("", str(number)): {"state": 0} for number in range(count)}
        self.replays = Replays(lambda: list(self.objects), self.objects.get)
        self.believed: dict[str, dict[Key, int]] = {}
        self.over: list[str] = []

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
            self._hear(who, key, None if self.replays.forget(who, key) else old, new)

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
                world.change(("", str(which)), None if what == "remove" else {"state": number + 1})
        if hurried:
            world.replays.hurry("second")
            assert len(world.believed["second"]) == len(world.objects)
        await world.settle()
        states = {key: obj["state"] for key, obj in world.objects.items()}
        assert world.believed == {"first": states, "second": states}
        assert world.over == ["first", "second"]

    asyncio.run(run())


async def test_some_are_told_of_in_each_turn() -> None:
    world = World(3 * A_TURN)
    world.come("one")
    world.come("other")
    seen = []
    while world.replays:
        seen.append((len(world.believed["one"]), len(world.believed["other"])))
        await asyncio.sleep(0)
    assert [done - before for before, done in zip([0, *map(sum, seen)], map(sum, seen), strict=False)][1:] == [
        A_TURN
    ] * 5


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

    replays = Replays(lambda: [("", "0"), ("", "1"), ("", "2")], lambda key: {})
    with caplog.at_level(logging.ERROR):
        replays.add("one", tell, lambda: over.append(True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert (heard, over) == (["0", "2"], [True])
    assert "cannot tell of /1" in caplog.text
