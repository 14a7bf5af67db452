import threading
from unittest.mock import AsyncMock

import pytest

from pilothouse.machinery.workers import LONG
from pilothouse.storage.backends.contract import Event, KeyValue
from pilothouse.storage.cacher import reading
from pilothouse.storage.cacher.entries import Entry, UnreadEntry
from pilothouse.storage.cacher.reading import EntryReader, Turn
from pilothouse.storage.cacher.tally import CacheTally


class Codec:
    """Notes where values are read."""

    def __init__(self):
        self.threads = {}

    def entry(self, key, value, revision):
        self.threads[key] = threading.current_thread()
        if value.startswith(b"bad"):
            raise ValueError(key)
        return Entry(key, value, revision)

    def data_of(self, value, revision):
        return self.entry("", value, revision).data


def item(key, value):
    return KeyValue(key, value, 7, 1)


SHORT, JUST_LONG = b"x" * (LONG - 1), b"x" * LONG


@pytest.fixture
def codec():
    return Codec()


@pytest.fixture
def tally():
    return CacheTally()


@pytest.fixture
def reader(codec, tally):
    return EntryReader(codec, tally)


async def test_long_values_are_read_aside_and_short_ones_are_not(reader, codec):
    here = threading.current_thread()
    entries = await reader.read_all([item("a", SHORT), item("b", JUST_LONG), item("c", b"")])
    assert [entry.key for entry in entries] == ["a", "b", "c"]
    assert [codec.threads[key] is here for key in "abc"] == [True, False, True]
    assert (await reader.read_or_raise(item("d", JUST_LONG))).key == "d"
    assert codec.threads["d"] is not here


@pytest.mark.parametrize(("value", "found"), [(None, None), (b"x", b"x"), (JUST_LONG, JUST_LONG)])
async def test_events_are_read_but_for_deletions(reader, value, found):
    entry = await reader.read_event(Event("a", 9, value, created=True), Turn())
    assert (entry and entry.data) == found


async def test_only_short_values_are_read_for_less(reader, codec):
    def less(key, value, revision):
        return UnreadEntry(codec, key, value, revision, "", key, {}, {})

    short, long = await reader.read_all([item("a", b"x"), item("b", JUST_LONG)], less)
    assert (type(short), type(long)) == (UnreadEntry, Entry)


async def test_what_cannot_be_read_is_counted_and_left_out(reader, tally):
    items = [item("a", b"bad"), item("b", b"bad" + JUST_LONG), item("c", b"x")]
    assert [entry.key for entry in await reader.read_all(items)] == ["c"]
    assert tally.decode_errors == 2
    for bad in items[:2]:
        with pytest.raises(ValueError, match=bad.key):
            await reader.read_or_raise(bad)


async def test_data_is_made_of_all_but_what_has_none(reader, codec, tally):
    unread = [UnreadEntry(codec, key, value, 7, "", key, {}, {}) for key, value in (("a", b"x"), ("b", b"bad"))]
    read = Entry("c", b"y", 7)
    assert await reader.make_data([*unread, read]) == {unread[1]}
    assert unread[0].data == b"x"
    assert tally.decode_errors == 1


@pytest.mark.parametrize(("sizes", "turns"), [([1] * 49, 0), ([1] * 100, 2), ([LONG] * 4, 2), ([2 * LONG], 1)])
async def test_a_place_in_a_turn_has_room_for_so_many_and_so_much(monkeypatch, sizes, turns):
    places = AsyncMock()
    monkeypatch.setattr(reading, "request_turns", lambda: places)
    turn = Turn()
    for size in sizes:
        await turn.take(size)
    assert places.take.await_count == turns
