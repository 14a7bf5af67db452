import pytest

from pilothouse.storage.backends.contract import (
    Compacted,
    Conflict,
    Event,
    Full,
    FutureRevision,
    History,
    KeyExists,
    KeyValue,
    Page,
    StorageError,
    TooLarge,
    Unavailable,
    UnusableStore,
)
from pilothouse.storage.backends.shared import messages

ONE = KeyValue("/a/ü", b"\0\xff", 7, 3)
ERRORS = [
    KeyExists("/a/1", 4),
    Conflict("/a/1", 4, ONE),
    Conflict("/a/1", 4, None),
    Compacted(3, 9),
    FutureRevision(9, 3),
    Full("no room"),
    TooLarge("too large"),
    Unavailable("away"),
    StorageError("not valid text"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_keep_their_kind_and_what_they_carry(error):
    told = messages.unpack_error(messages.pack_error(error))
    assert type(told) is type(error)
    assert (str(told), vars(told)) == (str(error), vars(error))


def test_an_error_of_a_kind_that_does_not_travel_is_told_as_the_nearest():
    told = messages.unpack_error(messages.pack_error(UnusableStore("damaged")))
    assert (type(told), str(told)) == (StorageError, "damaged")
    assert type(messages.unpack_error(messages.pack_error(ValueError("secret")))) is Unavailable


def test_pages_and_history_come_back_as_they_were():
    page = Page([ONE, KeyValue("/b", b"", 8, 8)], 9, True, 4)
    assert messages.unpack_page(messages.pack_page(page)) == page
    history = History([Event("/a", 4, b"x", True), Event("/a", 5, None, False, ONE)], 6)
    assert messages.unpack_history(messages.pack_history(history)) == history
