import gc
from collections.abc import Iterator

import pytest

from pilothouse.process.garbage import Survivors


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """No collection but those that a test tells of."""
    gc.disable()
    gc.unfreeze()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_survives_two_looks_is_frozen_until_a_look_at_everything_is_due() -> None:
    survivors = Survivors(first_full=3)
    frozen = []
    for generation in (0, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1):
        survivors("start", {"generation": generation})
        survivors("stop", {"generation": generation})
        frozen.append(gc.get_freeze_count() > 0)
    assert frozen == [False, True, True, False, False, True, True, True, True, False, False]


def test_looks_at_an_oldest_generation_with_nothing_in_it_change_nothing() -> None:
    survivors = Survivors(first_full=2)
    for generation in (2, 1, 2):
        survivors("stop", {"generation": generation})
        assert gc.get_freeze_count() > 0
    survivors("stop", {"generation": 1})
    assert gc.get_freeze_count() == 0
