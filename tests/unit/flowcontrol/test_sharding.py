from hypothesis import given
from hypothesis import strategies as st

from pilothouse.flowcontrol.sharding import can_deal, deal, flow_hash


@given(st.integers(0, 2**64 - 1), st.integers(1, 200), st.integers(1, 8))
def test_hands_hold_different_queues(hash_value: int, queues: int, size: int) -> None:
    size = min(size, queues)
    hand = deal(hash_value, queues, size)
    assert len(set(hand)) == size
    assert all(0 <= queue < queues for queue in hand)


def test_hands_are_those_that_kube_apiserver_deals() -> None:
    assert deal(0, 128, 4) == (0, 1, 2, 3)
    assert deal(128 * 127 - 1, 128, 2) == (127, 126)
    assert flow_hash("a", "b") == 15254180239957406297


def test_all_hands_are_dealt_as_often() -> None:
    counts: dict[tuple[int, ...], int] = {}
    for hash_value in range(5 * 4 * 3):
        hand = deal(hash_value, 5, 3)
        counts[hand] = counts.get(hand, 0) + 1
    assert set(counts.values()) == {1}


def test_what_a_hash_is_long_enough_for() -> None:
    assert can_deal(128, 8)
    assert not can_deal(512, 8)
    assert not can_deal(2, 3)
    assert not can_deal(0, 0)
