from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.window import Window, WindowLimits


def change(revision, at=0.0, superseded=0, key="/a/x"):
    previous = Entry(key, b"x" * superseded, revision - 1) if superseded else None
    return Change(key, revision, Entry(key, b"", revision), previous, None, at)


def revisions(changes):
    return None if changes is None else [each.revision for each in changes]


def test_reaches_back_to_its_start_and_no_further():
    window = Window(10, WindowLimits(), lambda: 0)
    for revision in (12, 15, 20):
        window.append(change(revision))
    assert revisions(window.since(9)) is None
    assert revisions(window.since(10)) == [12, 15, 20]
    assert revisions(window.since(12)) == [15, 20]
    assert revisions(window.since(14)) == [15, 20]
    assert revisions(window.since(99)) == []


def test_is_bounded_by_number():
    window = Window(0, WindowLimits(changes=2), lambda: 0)
    for revision in (1, 2, 3):
        window.append(change(revision))
    assert (window.start, revisions(window.since(1))) == (1, [2, 3])


def test_is_bounded_by_the_bytes_it_alone_keeps():
    window = Window(0, WindowLimits(superseded_bytes=100), lambda: 0)
    for revision in (1, 2, 3, 4):
        window.append(change(revision, superseded=40))
    assert revisions(window.since(window.start)) == [3, 4]
    window.append(change(5))
    assert revisions(window.since(window.start)) == [3, 4, 5]


def test_of_a_large_resource_it_keeps_more_bytes():
    there_are = 96
    window = Window(0, WindowLimits(superseded_bytes=100), lambda: there_are)
    for revision in range(1, 21):
        window.append(change(revision, superseded=40))
    assert revisions(window.since(window.start)) == [15, 16, 17, 18, 19, 20]
    there_are = 16
    window.trim(0.0)
    assert revisions(window.since(window.start)) == [19, 20]


def test_is_bounded_by_age():
    window = Window(0, WindowLimits(seconds=75), lambda: 0)
    window.append(change(1, at=0.0))
    window.append(change(2, at=50.0))
    window.trim(75.0)
    assert len(window) == 2
    window.trim(75.1)
    assert (len(window), window.start) == (1, 1)
    window.trim(1000.0)
    assert (len(window), window.start, window.since(2)) == (0, 2, [])


def test_tells_whether_a_prefix_was_touched():
    window = Window(10, WindowLimits(), lambda: 0)
    window.append(change(11, key="/a/x"))
    window.append(change(12, key="/b/x"))
    assert not window.touched_since(12, "/")
    assert not window.touched_since(11, "/a/")
    assert window.touched_since(10, "/a/")
    assert window.touched_since(9, "/c/"), "what the window does not know may have happened"
    assert window.touched_since(10, "/c/", effort=1), "nor does it search for ever"
