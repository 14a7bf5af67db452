"""One question for all who wait: who asks it, and what happens when that one leaves."""

from __future__ import annotations

import asyncio
import gc

import pytest

from pilothouse.net import eager
from pilothouse.net.eager import Prompt
from pilothouse.storage.backends.rounds import SharedRounds


class Questions:
    """Answered by the test, one after the other."""

    def __init__(self) -> None:
        self.open: list[Prompt[int]] = []
        self.rounds = SharedRounds(self._ask)

    async def _ask(self) -> int:
        self.open.append(Prompt())
        return await self.open[-1]


class Reader:
    """One who asks, stepped by hand: so the test says who comes, goes on and leaves when."""

    def __init__(self, questions: Questions) -> None:
        self._reading = questions.rounds.get()
        self.waits_for = self._reading.send(None)

    def go_on(self) -> int | None:
        """The answer, or nothing if it waits for something else now."""
        assert self.waits_for.done()
        try:
            self.waits_for = self._reading.send(None)
        except StopIteration as stop:
            return stop.value
        return None

    def leave(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            self._reading.throw(asyncio.CancelledError())


async def test_a_lone_reader_asks_itself_and_waits_for_nothing_else() -> None:
    questions = Questions()
    reader = Reader(questions)
    assert reader.waits_for is questions.open[0]
    questions.open[0].set_result(5)
    assert reader.go_on() == 5


async def test_who_comes_while_it_is_asked_shares_the_next_question() -> None:
    questions = Questions()
    first, second, third = (Reader(questions) for _ in range(3))
    questions.open[0].set_result(1)
    assert first.go_on() == 1
    late = Reader(questions)  # before the next question has left
    assert second.go_on() is None
    assert not third.waits_for.done()
    questions.open[1].set_result(2)
    assert [second.go_on(), third.go_on(), late.go_on()] == [2, 2, 2]
    assert len(questions.open) == 2


async def test_the_question_of_one_who_leaves_is_asked_by_another() -> None:
    questions = Questions()
    first, second, third = (Reader(questions) for _ in range(3))
    first.leave()
    assert second.go_on() is None
    fourth = Reader(questions)
    second.leave()
    assert third.go_on() is None
    questions.open[2].set_result(3)
    assert [third.go_on(), fourth.go_on()] == [3, 3]
    again = Reader(questions)
    questions.open[3].set_result(4)
    assert again.go_on() == 4


async def test_one_who_leaves_with_the_turn_passes_it_on() -> None:
    questions = Questions()
    first, second, third = (Reader(questions) for _ in range(3))
    questions.open[0].set_result(1)
    assert first.go_on() == 1
    second.leave()
    assert third.go_on() is None
    questions.open[1].set_result(2)
    assert third.go_on() == 2


async def test_a_failure_is_told_to_those_of_its_round() -> None:
    questions = Questions()
    first, second, third = (Reader(questions) for _ in range(3))
    questions.open[0].set_exception(ValueError("one"))
    with pytest.raises(ValueError, match="one"):
        first.go_on()
    assert second.go_on() is None
    questions.open[1].set_exception(ValueError("two"))
    for reader in (second, third):
        with pytest.raises(ValueError, match="two"):
            reader.go_on()


async def test_the_end_is_told_to_all_who_wait_for_others() -> None:
    questions = Questions()
    first, second = Reader(questions), Reader(questions)
    questions.rounds.close(ValueError("closed"))
    with pytest.raises(ValueError, match="closed"):
        second.go_on()
    questions.open[0].set_result(1)
    assert first.go_on() == 1


async def test_a_question_sent_ahead_is_for_one_and_others_share_the_next() -> None:
    questions = Questions()
    foreseen = questions.rounds.foresee()
    assert foreseen is not None
    assert len(questions.open) == 1
    assert questions.rounds.foresee() is None
    late, later = Reader(questions), Reader(questions)
    questions.open[0].settle(1)
    assert await foreseen == 1
    assert late.go_on() is None
    questions.open[1].settle(2)
    assert [late.go_on(), later.go_on()] == [2, 2]
    assert questions.rounds.foresee() is not None


async def test_who_had_a_question_sent_ahead_goes_on_within_the_call_that_answers_it() -> None:
    questions = Questions()
    heard: list[int] = []

    async def read() -> None:
        foreseen = questions.rounds.foresee()
        assert foreseen is not None
        heard.append(await foreseen)

    eager.start(read(), asyncio.get_running_loop(), lambda _: None, lambda error: None)
    questions.open[0].settle(7)
    assert heard == [7]


async def test_nobody_has_to_come_for_what_was_asked_ahead(caplog: pytest.LogCaptureFixture) -> None:
    questions = Questions()
    questions.rounds.foresee()
    questions.open[0].settle(1)
    questions.rounds.foresee()
    questions.open[1].refuse(ValueError("no"))
    gc.collect()
    assert not caplog.records
    reader = Reader(questions)
    questions.open[2].settle(3)
    assert reader.go_on() == 3


async def test_one_who_leaves_what_was_asked_ahead_leaves_the_others_their_turn() -> None:
    questions = Questions()
    foreseen = questions.rounds.foresee()
    assert foreseen is not None
    waiting = asyncio.ensure_future(foreseen)
    waiting.cancel()
    other = Reader(questions)
    questions.open[0].settle(1)
    assert other.go_on() is None
    questions.open[1].settle(2)
    assert other.go_on() == 2


async def test_a_failure_of_what_was_asked_ahead_is_told() -> None:
    questions = Questions()
    foreseen = questions.rounds.foresee()
    assert foreseen is not None
    questions.open[0].refuse(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await foreseen
