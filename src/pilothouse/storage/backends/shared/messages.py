"""What the owner of a log and those who follow it say to each other: calls of the contract, answers, and the feed.

    follower → owner   (number, method, arguments…)   a call; numbers count up from 1
    owner → follower   (number, True, result)          its answer
                       (number, False, error)          or why there is none
                       (FEED, revision, events)        all up to a revision, ahead of the answers to those who wrote it
                       (BROKEN, error)                 nothing more will come; a new feed begins with HELLO
                       (HELLO, revision)               the feed is complete for every revision after this one

An event of the feed is (key, revision, value, created, 0). Whoever wrote it gets (None, revision, None, created, number
of the call) instead: key and value need not travel back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

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
)

FEED: Final = 0
BROKEN: Final = -1
HELLO: Final = -2

_PLAIN: Final[dict[str, type[StorageError]]] = {
    each.__name__: each for each in (StorageError, Unavailable, Full, TooLarge)
}
"""Errors that are nothing but their words; any other is told as the nearest of them."""


def pack_key_value(item: KeyValue | None) -> tuple[Any, ...] | None:
    """A key as it travels."""
    return None if item is None else (item.key, item.value, item.revision, item.created)


def unpack_key_value(packed: tuple[Any, ...] | None) -> KeyValue | None:
    """The key again."""
    return None if packed is None else KeyValue(*packed)


def pack_page(page: Page) -> tuple[Any, ...]:
    """A part of a listing as it travels."""
    return [pack_key_value(item) for item in page.items], page.revision, page.more, page.remaining


def unpack_page(packed: tuple[Any, ...]) -> Page:
    """The part of the listing again."""
    items, revision, more, remaining = packed
    return Page([KeyValue(*item) for item in items], revision, more, remaining)


def pack_history(history: History) -> tuple[Any, ...]:
    """A part of the log as it travels."""
    events = [
        (event.key, event.revision, event.value, event.created, pack_key_value(event.previous))
        for event in history.events
    ]
    return events, history.revision


def unpack_history(packed: tuple[Any, ...]) -> History:
    """The part of the log again."""
    events, revision = packed
    return History(
        [Event(key, at, value, created, unpack_key_value(previous)) for key, at, value, created, previous in events],
        revision,
    )


def pack_events(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Events of the feed for whoever did not write them."""
    return [(event.key, event.revision, event.value, event.created, 0) for event in events]


def pack_error(error: BaseException) -> tuple[Any, ...]:
    """An error of the contract with what it carries; anything else becomes Unavailable."""
    match error:
        case KeyExists():
            return "KeyExists", error.key, error.current
        case Conflict():
            return "Conflict", error.key, error.expected, pack_key_value(error.current)
        case Compacted():
            return "Compacted", error.requested, error.compacted
        case FutureRevision():
            return "FutureRevision", error.requested, error.current
        case StorageError():
            known = next(each for each in type(error).__mro__ if each in _PLAIN.values())
            return known.__name__, str(error)
        case _:
            return "Unavailable", f"the store failed: {type(error).__name__}"


def unpack_error(packed: tuple[Any, ...]) -> StorageError:
    """The error again."""
    kind, *carried = packed
    match kind:
        case "KeyExists":
            return KeyExists(*carried)
        case "Conflict":
            key, expected, current = carried
            return Conflict(key, expected, unpack_key_value(current))
        case "Compacted":
            return Compacted(*carried)
        case "FutureRevision":
            return FutureRevision(*carried)
        case _:
            return _PLAIN[kind](*carried)
