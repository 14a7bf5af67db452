from pilothouse.flowcontrol.dropped_requests import MOST_SECONDS, DroppedRequests


def test_it_doubles_while_many_are_dropped_and_falls_back_by_one() -> None:
    now = 100.0
    dropped = DroppedRequests(lambda: now)
    seen = []
    for _ in range(200):
        for _ in range(5):
            dropped.add()
        seen.append(dropped.retry_after)
        now += 1
    assert sorted(set(seen)) == [1, 2, 4, 8, 16, MOST_SECONDS]
    assert seen[-1] == MOST_SECONDS
    now += 100
    assert dropped.add() == MOST_SECONDS - 1
    now += 100
    assert dropped.add() == MOST_SECONDS - 2


def test_the_first_is_to_come_back_after_a_second() -> None:
    assert DroppedRequests(lambda: 5.0).add() == 1
