from types import SimpleNamespace

import pytest

from pilothouse.storage.cacher.bookmarks import BookmarkSchedule


def watcher(deadline=None):
    return SimpleNamespace(deadline=deadline, ended=False)


@pytest.mark.parametrize(
    "deadline, expected",
    [
        (None, 160.0),
        (1000.0, 160.0),
        (162.0, 160.0),
        (150.0, 148.0),
        (102.5, 100.5),
        (102.0, 160.0),
        (101.0, 160.0),
    ],
)
def test_once_a_minute_and_two_seconds_before_the_end(deadline, expected):
    assert BookmarkSchedule().next_time(100.0, deadline) == expected


def test_watchers_come_round_again_until_they_end():
    schedule = BookmarkSchedule()
    first, second = watcher(), watcher(deadline=30.0)
    schedule.add(first, 0.0)
    schedule.add(second, 0.0)
    assert schedule.tick(27.9) == []
    assert schedule.tick(28.0) == [second]
    assert schedule.tick(60.0) == [first]
    assert schedule.tick(61.0) == []
    second.ended = True
    assert schedule.tick(200.0) == [first]
    assert len(schedule) == 1
