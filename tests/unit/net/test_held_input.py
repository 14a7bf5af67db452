"""Who gives way when requests that are not complete hold too much."""

import pytest

from pilothouse.net.held_input import HeldInput


class Holding:
    """Notes that it gave way."""

    def __init__(self) -> None:
        self.gone = False

    def give_way(self) -> None:
        self.gone = True


@pytest.fixture
def holders() -> list[Holding]:
    return [Holding() for _ in range(5)]


def test_the_first_of_the_address_that_holds_most_gives_way(holders: list[Holding]) -> None:
    held = HeldInput(100)
    honest, slow, slower, *_ = holders
    held.hold(honest, "10.0.0.1", 30)
    held.hold(slow, "10.0.0.2", 30)
    held.hold(slower, "10.0.0.2", 10)
    held.hold(slow, "10.0.0.2", 70)
    assert [holder.gone for holder in holders[:3]] == [False, True, False]
    assert held.total == 40


def test_networks_of_ipv6_count_as_one(holders: list[Holding]) -> None:
    held = HeldInput(100)
    held.hold(holders[0], "10.0.0.1", 40)
    for holder, address in zip(holders[1:], ("2001:db8:1:2::1", "2001:db8:1:2::2", "2001:db8:1:2::3"), strict=False):
        held.hold(holder, address, 21)
    assert [holder.gone for holder in holders] == [False, True, False, False, False]


def test_who_is_complete_counts_and_stays(holders: list[Holding]) -> None:
    held = HeldInput(100)
    complete, last, *_ = holders
    held.hold(complete, "a", 90)
    held.complete(complete)
    held.hold(last, "b", 20)
    assert (complete.gone, last.gone, held.total) == (False, True, 90)
    held.release(complete)
    held.release(complete)
    assert held.total == 0


def test_who_shrinks_makes_room(holders: list[Holding]) -> None:
    held = HeldInput(100)
    held.hold(holders[0], "a", 90)
    held.hold(holders[0], "a", 20)
    held.hold(holders[1], "a", 80)
    assert not holders[0].gone and not holders[1].gone
