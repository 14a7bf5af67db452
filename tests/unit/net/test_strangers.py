import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.strangers import Strangers, affordable, raise_descriptor_limit


def test_the_oldest_of_the_address_with_most_goes() -> None:
    strangers: Strangers[str] = Strangers(4)
    for name, address in [("a1", "a"), ("b1", "b"), ("a2", "a"), ("a3", "a")]:
        assert strangers.surplus() is None
        strangers.add(name, address)
    assert strangers.surplus() == "a1"
    assert strangers.surplus(lambda name: name == "a3") == "a3"
    assert strangers.surplus(lambda name: False) == "a1"
    strangers.discard("a1")
    assert strangers.surplus() is None
    assert len(strangers) == 3


def test_the_latest_goes_where_the_first_are_to_stay() -> None:
    strangers: Strangers[str] = Strangers(3)
    for name, address in [("a1", "a"), ("a2", "a"), ("b1", "b")]:
        assert strangers.latest_surplus() is None
        strangers.add(name, address)
    assert strangers.latest_surplus() == "a2"
    strangers.discard("a2")
    assert strangers.latest_surplus() is None


def test_addresses_of_one_network_are_one() -> None:
    strangers: Strangers[int] = Strangers(2)
    strangers.add(0, "2001:db8::1")
    for number in (1, 2):
        strangers.add(number, f"2001:db9:0:1:{number}::1")
    assert strangers.surplus() == 1


@given(st.lists(st.tuples(st.integers(0, 20), st.sampled_from("abc"), st.booleans())))
def test_it_always_knows_who_has_most(steps: list[tuple[int, str, bool]]) -> None:
    strangers: Strangers[int] = Strangers(0)
    model: dict[int, str] = {}
    for number, address, comes in steps:
        if comes and number not in model:
            strangers.add(number, address)
            model[number] = address
        elif not comes:
            strangers.discard(number)
            model.pop(number, None)
        sizes = {each: list(model.values()).count(each) for each in model.values()}
        found = strangers.oldest()
        assert (found is None) == (not model)
        if found is not None:
            assert sizes[model[found]] == max(sizes.values())
            assert found == next(each for each in model if model[each] == model[found])


def test_descriptors() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1] - 1, before[1]))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert affordable(10) == 10
    assert affordable(1 << 40) < 1 << 40


@pytest.mark.parametrize("address", ["10.0.0.1", "", "::1"])
def test_every_address_counts(address: str) -> None:
    strangers: Strangers[int] = Strangers(0)
    strangers.add(1, address)
    assert strangers.oldest() == 1
