from pilothouse.storage.backends.sqlite.retention import Retention, RetentionClock


def test_what_is_older_than_the_retention_may_go():
    clock = RetentionClock(Retention(seconds=300, marks=10))
    assert [clock.due(now, now) for now in range(0, 300, 15)] == [0] * 20
    assert clock.due(300, 300) == 0
    assert clock.due(330, 330) == 30
    assert clock.due(345, 345) == 0
    assert clock.due(700, 700) == 330


def test_a_quiet_store_has_nothing_to_forget():
    clock = RetentionClock(Retention(seconds=300))
    assert {clock.due(now, 42) for now in range(0, 290, 10)} == {0}
    assert clock.due(300, 42) == 42


def test_the_number_of_revisions_is_bounded():
    clock = RetentionClock(Retention(seconds=300, revisions=1000))
    assert clock.due(0, 900) == 0
    assert clock.due(1, 2500) == 1500
