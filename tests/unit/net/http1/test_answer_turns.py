"""Answers to a crowd leave together, those to one client at once, and none is lost or overtaken."""

from __future__ import annotations

import asyncio

from pilothouse.net.http1.answer_turns import AnswerTurns


class Waiting:
    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self._log = name, log

    def send_kept(self) -> None:
        self._log.append(self._name)


async def test_who_is_alone_is_answered_at_once() -> None:
    turns, alone = AnswerTurns(asyncio.get_running_loop(), lambda: 0.0), Waiting("a", [])
    assert not any(turns.keeps(alone) for _ in range(50))


async def test_a_crowd_is_answered_at_the_end_of_the_turn_in_its_order() -> None:
    log: list[str] = []
    turns = AnswerTurns(asyncio.get_running_loop(), lambda: 0.0)
    crowd = [Waiting(str(number), log) for number in range(14)]
    kept = [turns.keeps(each) for each in crowd]
    assert (kept[:8], kept[8:]) == ([False] * 8, [True] * 6)
    assert log == []
    await asyncio.sleep(0)
    assert log == ["8", "9", "10", "11", "12", "13"]


async def test_a_large_crowd_does_not_wait_for_the_end_of_the_turn() -> None:
    log: list[str] = []
    turns = AnswerTurns(asyncio.get_running_loop(), lambda: 0.0)
    for number in range(41):
        turns.keeps(Waiting(str(number), log))
    assert len(log) == 32
    await asyncio.sleep(0)
    assert len(log) <= 33


async def test_nobody_waits_for_the_work_of_many_others() -> None:
    log: list[str] = []
    times = iter([0.0, 0.0005, 0.002])
    turns = AnswerTurns(asyncio.get_running_loop(), lambda: next(times))
    kept = [turns.keeps(Waiting(str(number), log)) for number in range(11)]
    assert kept[8:] == [True, True, False]
    assert log == ["8", "9"]


async def test_whoever_is_alone_again_is_answered_at_once() -> None:
    log: list[str] = []
    turns = AnswerTurns(asyncio.get_running_loop(), lambda: 0.0)
    for number in range(20):
        turns.keeps(Waiting(str(number), log))
    await asyncio.sleep(0)
    alone = Waiting("alone", log)
    turns.keeps(alone)
    assert [turns.keeps(alone) for _ in range(3)] == [False, False, False]
