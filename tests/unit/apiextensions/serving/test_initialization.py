"""Whether a version has been readable as a whole."""

from __future__ import annotations

import pytest

from pilothouse.apiextensions.serving.initialization import Initialization


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(("seconds", "expected"), [(0, 1), (11, 1), (12, 2), (40, 11), (60, 30), (1e9, 30)])
def test_who_is_refused_is_told_to_wait_longer_and_longer(seconds: float, expected: int) -> None:
    clock = Clock()
    state = Initialization(done=False, clock=clock)
    clock.now += seconds
    state.fail()
    assert (state.done, state.retry_after) == (False, expected)


def test_what_is_unreadable_for_long_is_given_up() -> None:
    clock = Clock()
    state = Initialization(done=True, clock=clock)
    state.fail()
    clock.now += 30
    state.fail()
    assert state.done
    clock.now += 1
    state.fail()
    assert not state.done
    assert state.retry_after == 1
    state.succeed()
    clock.now += 31
    state.fail()
    assert state.done
