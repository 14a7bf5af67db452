"""Looking at the requests of several processes under one name, for as long as somebody asks."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from pilothouse.console import lookout
from pilothouse.console.lookout import Lookout
from pilothouse.console.recorder import MOST_VIEWERS, Record, Viewer

VITALS = {
    "loopLag": 0.0,
    "store": {"bytes": 1, "revision": 1, "compacted": 0, "objects": {}},
    "watchCount": 0,
    "watches": [],
    "levels": [],
}


class Vitals:
    async def read(self) -> dict[str, Any]:
        return VITALS


class Recorder:
    """Has viewers, and no requests of its own."""

    def __init__(self) -> None:
        self.viewers: list[Viewer] = []

    @property
    def has_room(self) -> bool:
        return len(self.viewers) < MOST_VIEWERS

    def join(self) -> Viewer | None:
        if not self.has_room:
            return None
        self.viewers.append(Viewer())
        return self.viewers[-1]

    def leave(self, viewer: Viewer) -> None:
        self.viewers.remove(viewer)


class Workers:
    """Processes in one: who gathers asks all."""

    acts = True

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def gather(self, name: str, answer: Any) -> Any:
        self.answers.append(answer)

        async def gathered(*words: Any) -> list[Any]:
            return [await each(*words) for each in self.answers]

        return gathered


def processes(count: int) -> list[tuple[Lookout, Recorder]]:
    workers = Workers()
    recorders = [Recorder() for _ in range(count)]
    return [(Lookout(each, Vitals(), workers), each) for each in recorders]  # type: ignore[arg-type]


async def seen(through: Lookout, name: str, with_vitals: bool = False) -> list[Any]:
    """What a viewer is told, decoded."""
    return [orjson.loads(line) for line in await through.look(name, with_vitals)]


def at(time: float) -> Record:
    return time, orjson.dumps({"time": time})


async def test_a_viewer_is_told_of_all_in_the_order_of_time() -> None:
    (first, one), (_, two) = processes(2)
    (line,) = await seen(first, "ann", True)
    assert line["vitals"]["processes"] == 2
    one.viewers[0].offer(at(3))
    one.viewers[0].offer(at(1))
    two.viewers[0].offer(at(2))
    two.viewers[0].offer(None)
    assert await seen(first, "ann") == [{"requests": [{"time": 1}, {"time": 2}, {"time": 3}], "missed": 1}]
    assert await first.look("ann", False) == []


async def test_viewers_take_nothing_from_each_other() -> None:
    (first, one), (second, _) = processes(2)
    await first.look("ann", False)
    await second.look("bob", False)
    for viewer in one.viewers:
        viewer.offer(at(1))
    assert await first.look("ann", False) and await second.look("bob", False)


async def test_who_asks_no_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "LEASE_SECONDS", 0.01)
    (first, one), (_, two) = processes(2)
    await first.look("ann", False)
    first.leave("ann")
    first.leave("ann")
    assert not one.viewers
    while two.viewers:
        await asyncio.sleep(0.01)


async def test_one_too_many_is_told_nothing() -> None:
    ((first, one),) = processes(1)
    for number in range(MOST_VIEWERS):
        await first.look(str(number), False)
    assert not first.has_room
    assert await first.look("late", False) == []
    assert len(one.viewers) == MOST_VIEWERS
