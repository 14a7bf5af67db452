import gc
import weakref
from collections.abc import Iterator

import pytest

from pilothouse.process.garbage import Survivors


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
        survivors("stop", {"generation": generation})
        frozen.append(gc.get_freeze_count() > 0)
    assert frozen == [False, True, True, True, False, False, True, *([True] * 14), False, False]


def test_looks_at_an_oldest_generation_with_nothing_in_it_change_nothing() -> None:
    survivors = Survivors(first_full=1)
    for generation in (2, 1, 2):
        survivors("stop", {"generation": generation})
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
