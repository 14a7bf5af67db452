import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from pilothouse.process.garbage import Survivors, wanted_seconds

MUCH = 1_000_000


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """No collection but those that a test tells of."""
    gc.disable()
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_survives_two_looks_is_frozen_until_a_look_at_everything_is_due() -> None:
    survivors = Survivors(first_full=2)
    frozen = []
    for generation in (0, 1, 1, 1, 1, 1, 2, *([1] * 15), 1):
        survivors("start", {"generation": generation})
        survivors("stop", {"generation": generation, "collected": MUCH})
        frozen.append(gc.get_freeze_count() > 0)
    assert frozen == [False, True, True, True, False, False, True, *([True] * 14), False, False]


@pytest.mark.parametrize(("found", "times"), [(MUCH, 2), (50, 8)])
def test_a_look_that_found_next_to_nothing_is_repeated_later(found: int, times: int) -> None:
    survivors = Survivors(first_full=1)
    for generation in (1, 1, 2):
        survivors("stop", {"generation": generation, "collected": found})
    looks = 0
    while gc.get_freeze_count():
        survivors("stop", {"generation": 1})
        looks += 1
    assert 2 + looks == 2 * (2 * times)


def test_who_waits_for_the_processor_wants_it() -> None:
    before = time.process_time()
    assert wanted_seconds() >= before


def test_looks_at_an_oldest_generation_with_nothing_in_it_change_nothing() -> None:
    survivors = Survivors(first_full=1)
    for generation in (2, 1, 2):
        survivors("stop", {"generation": generation, "collected": MUCH})
        assert gc.get_freeze_count() > 0
    survivors("stop", {"generation": 1})
    assert gc.get_freeze_count() == 0


class Cycle:
    """Something that only a look at everything finds once it was frozen."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize(
    ("looks", "share", "is_found"), [(1, 0.0, False), (2, 0.05, True), (2, 0.2, False), (3, 0.05, True)]
)
async def test_a_quiet_moment_is_used_for_a_look_at_everything(looks: int, share: float, is_found: bool) -> None:
    now = 0.0
    survivors = Survivors(first_full=2, clock=lambda: now, processor=lambda: now * share)
    cycle = weakref.ref(Cycle())
    for _ in range(looks):
        survivors("stop", {"generation": 1})
    assert cycle() is not None
    now = 10.0
    await survivors.poll()
    assert (cycle() is None) == is_found
    assert gc.get_freeze_count() > 0
