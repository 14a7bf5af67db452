import pytest

from pilothouse.controllers.runtime.batches import slow_start_batch
from pilothouse.controllers.runtime.expectations import Expectations, UIDExpectations
from pilothouse.testing.fake_clock import FakeClock


async def test_what_was_asked_for_must_be_seen_first() -> None:
    expectations: Expectations[str] = Expectations(FakeClock())
    assert expectations.satisfied("a")
    expectations.expect_creations("a", 2)
    expectations.creation_observed("a")
    assert not expectations.satisfied("a")
    expectations.creation_observed("a")
    expectations.creation_observed("a")
    assert expectations.satisfied("a")
    expectations.expect("a", creations=1, deletions=1)
    expectations.deletion_observed("a")
    assert not expectations.satisfied("a")
    expectations.forget("a")
    assert expectations.satisfied("a")


async def test_nobody_waits_for_ever() -> None:
    clock = FakeClock()
    expectations: Expectations[str] = Expectations(clock)
    expectations.expect_deletions("a", 1)
    clock.advance(300)
    assert not expectations.satisfied("a")
    clock.advance(1)
    assert expectations.satisfied("a")


async def test_a_deletion_counts_once_and_only_if_it_was_waited_for() -> None:
    expectations: UIDExpectations[str] = UIDExpectations(FakeClock())
    expectations.expect_deletions_of("a", ["1", "2"])
    for uid in ("1", "1", "3"):
        expectations.deletion_of_observed("a", uid)
    assert expectations.uids("a") == {"2"}
    assert not expectations.satisfied("a")
    expectations.deletion_of_observed("a", "2")
    assert expectations.satisfied("a")


@pytest.mark.parametrize(("failing", "calls", "done"), [(None, 10, 10), (0, 1, 0), (2, 3, 2)])
async def test_batches_grow_until_one_fails(failing: int | None, calls: int, done: int) -> None:
    called = []

    async def call(number: int) -> None:
        called.append(number)
        if number == failing:
            raise RuntimeError("no")

    succeeded, error = await slow_start_batch(10, call)
    assert called == list(range(calls))
    assert succeeded == done
    assert (error is None) == (failing is None)
