import pytest

from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.entries import Entry


class Codec:
    def entry(self, key, value, revision):
        return Entry(key, value, revision)

    def restamp(self, entry, revision):
        return Entry(entry.key, entry.data, revision)


def change(before, after):
    previous = None if before is None else Entry("/a", before, 1)
    return Change("/a", 2, None if after is None else Entry("/a", after, 2), previous, Codec(), 0.0)


def is_red(entry):
    return entry.data == b"red"


@pytest.mark.parametrize(
    "before, after, plain, selected",
    [
        (None, b"red", "ADDED", "ADDED"),
        (None, b"blue", "ADDED", None),
        (b"red", b"red", "MODIFIED", "MODIFIED"),
        (b"blue", b"red", "MODIFIED", "ADDED"),
        (b"red", b"blue", "MODIFIED", "DELETED"),
        (b"blue", b"blue", "MODIFIED", None),
        (b"red", None, "DELETED", "DELETED"),
        (b"blue", None, "DELETED", None),
        (None, None, None, None),
    ],
)
def test_what_watchers_see(before, after, plain, selected):
    subject = change(before, after)
    seen, through = subject.seen_by_all(), subject.seen_through(is_red)
    assert (seen and seen.type) == plain
    assert (through and through.type) == selected
    for event in filter(None, (seen, through)):
        assert event.revision == 2


def test_a_disappearing_object_is_shown_in_its_last_matching_state():
    event = change(b"red", b"blue").seen_through(is_red)
    assert (event.entry.data, event.entry.revision) == (b"red", 2)


def test_every_view_is_made_once_and_shares_its_memo():
    subject = change(b"red", b"red")
    subject.seen_by_all().memo["json"] = b"encoded"
    assert subject.seen_through(is_red).memo == {"json": b"encoded"}
    gone = change(b"red", None)
    assert gone.seen_by_all() is gone.seen_through(is_red)
    assert gone.last_state() is gone.seen_by_all().entry
