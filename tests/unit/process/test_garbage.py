import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from pilothouse.process.garbage import Survivors, wanted_seconds

MUCH = 1_000_000


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """No collection but those that a test tells of; what collecting tests has left is kept from later ones again."""
    gc.disable()
    gc.unfreeze()
    yield
    gc.freeze()
    gc.enable()


def test_what_survives_two_looks_is_frozen_until_a_look_at_everything_is_due() -> None:
    survivors = Survivors(first_full=2)
    frozen = []
    for generation in (0, 1, 1, 1, 1, 1, 2, *([1] * 15), 1):
        survivors("start", {"generation": generation})
        survivors("stop", {"generation": generation, "collected": MUCH})
        frozen.append(gc.get_freeze_count() > 0)
    assert frozen == [False, True, True, True, False, False, True, *([True] * 14), False, False]


class Looks:
    """Counts looks at young objects, and frees none: what is frozen in a test process takes long to count."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_due = False
        monkeypatch.setattr(gc, "freeze", lambda: None)
        monkeypatch.setattr(gc, "unfreeze", self._unfreeze)

    def _unfreeze(self) -> None:
        self._is_due = True

    def until_one_at_everything(self, survivors: Survivors, found: int) -> int:
        """How many that have found so many there are before one at everything is due."""
        looks, self._is_due = 0, False
        while not self._is_due:
            survivors("stop", {"generation": 1, "collected": found})
            looks += 1
        return looks


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


@pytest.mark.parametrize(("found", "times"), [(MUCH, 2), (50, 8)])
def test_a_look_that_found_next_to_nothing_is_repeated_later(looks: Looks, found: int, times: int) -> None:
    survivors = Survivors(first_full=1)
    seen = looks.until_one_at_everything(survivors, MUCH)
    survivors("stop", {"generation": 2, "collected": found})
    assert seen + looks.until_one_at_everything(survivors, MUCH) == 2 * (seen * times)


@pytest.mark.parametrize(("found", "at"), [(MUCH, 2), (59, 2 * (2 * 8 * (2 * 8))), (0, 2 * (2 * 8 * (2 * 8)))])
def test_where_young_objects_are_hardly_ever_cycles_old_ones_are_looked_at_later_but_not_never(
    looks: Looks, found: int, at: int
) -> None:
    assert looks.until_one_at_everything(Survivors(first_full=1), found) == at


def test_who_waits_for_the_processor_wants_it() -> None:
    before = time.process_time()
    assert wanted_seconds() >= before


def test_looks_at_an_oldest_generation_with_nothing_in_it_change_nothing() -> None:
    survivors = Survivors(first_full=1)
    for generation in (2, 1, 2):
        survivors("stop", {"generation": generation, "collected": MUCH})
        assert gc.get_freeze_count() > 0
    survivors("stop", {"generation": 1, "collected": MUCH})
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
        survivors("stop", {"generation": 1, "collected": MUCH})
    assert cycle() is not None
    now = 10.0
    await survivors.poll()
    assert (cycle() is None) == is_found
    assert gc.get_freeze_count() > 0


async def test_no_quiet_moment_is_used_where_young_objects_were_hardly_ever_cycles() -> None:
    now = 0.0
    survivors = Survivors(first_full=2, clock=lambda: now, processor=lambda: 0.0)
    for _ in range(3):
        survivors("stop", {"generation": 1, "collected": 0})
    cycle = weakref.ref(Cycle())
    gc.freeze()
    now = 10.0
    await survivors.poll()
    assert cycle() is not None
