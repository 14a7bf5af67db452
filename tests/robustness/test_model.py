"""Random clients, kills and pauses: the history is explained by one log. ``make soak`` does this for hours."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pilothouse.testing.etcd_process import find_etcd
from pilothouse.testing.model.history import CREATE, DONE, REFUSED, UPDATE, History, Listed, Seen, Watched, Written
from pilothouse.testing.model.model import violations
from pilothouse.testing.model.runner import Plan, check


def test_a_server_that_is_killed_and_paused(tmp_path: Path) -> None:
    history, wrong = check(tmp_path / "data", Plan(seconds=3, writes=51, servers=1, every=1.5, seed=7))
    assert not wrong
    assert sum(write.outcome == DONE for write in history.written) > 50
    assert history.listed
    assert any(watched.events for watched in history.watched)


@pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")
def test_two_servers_on_an_etcd_whose_members_fail(tmp_path: Path) -> None:
    history, wrong = check(tmp_path / "data", Plan(seconds=3, writes=51, servers=2, members=3, every=0.7, seed=3))
    assert not wrong
    assert sum(write.outcome == DONE for write in history.written) > 50
    assert history.listed
    assert any(watched.events for watched in history.watched)


# What the model refuses


def story() -> History:
    """A small history without fault."""
    history = History()
    history.written = [
        Written(CREATE, "a", "1", 0, 0.0, 1.0, DONE, 10),
        Written(UPDATE, "a", "2", 10, 2.0, 3.0, DONE, 12),
        Written(CREATE, "b", "3", 0, 2.0, 3.5, DONE, 11),
        Written(UPDATE, "a", "4", 10, 4.0, 5.0, REFUSED),
    ]
    history.watched = [
        Watched(5, [Seen("ADDED", "a", 10, "1"), Seen("ADDED", "b", 11, "3"), Seen("MODIFIED", "a", 12, "2")])
    ]
    history.listed = [Listed(3.6, 4.0, 12, {"a": (12, "2"), "b": (11, "3")})]
    return history


def test_a_history_without_fault() -> None:
    assert violations(story()) == []


def test_a_lost_update() -> None:
    history = story()
    history.written[1].expected = 9
    assert any("replaced version 10" in each for each in violations(history))


def test_a_write_that_was_refused_and_happened() -> None:
    history = story()
    history.watched[0].events.append(Seen("MODIFIED", "a", 13, "4"))
    assert any("tag 4" in each for each in violations(history))


def test_versions_against_the_order_of_time() -> None:
    history = story()
    history.written.append(Written(CREATE, "c", "5", 0, 6.0, 7.0, DONE, 9))
    assert any("came after version 12" in each for each in violations(history))


def test_a_watch_that_missed_something_or_repeated_itself() -> None:
    history = story()
    events = history.watched[0].events
    history.watched.append(Watched(5, [events[0], events[2]]))
    assert any("missed" in each for each in violations(history))
    history = story()
    history.watched.append(Watched(5, [events[0], events[0]]))
    assert any("after version 10" in each for each in violations(history))


def test_a_bookmark_that_promised_too_much() -> None:
    history = story()
    history.watched.append(Watched(5, [Seen("BOOKMARK", "", 11, ""), history.watched[0].events[2]]))
    assert any("missed" in each for each in violations(history))


def test_a_list_that_is_wrong_or_stale() -> None:
    history = story()
    history.listed[0].items.pop("b")
    assert any("differs" in each for each in violations(history))
    history = story()
    history.listed = [Listed(3.6, 4.0, 11, {"a": (10, "1"), "b": (11, "3")})]
    assert any("was acknowledged" in each for each in violations(history))
    history.listed[0].exact = True
    assert violations(history) == []


def long_story(writes: int) -> History:
    """One object that is written over and over, with a watch of it and a list after each write."""
    history = History()
    history.watched = [Watched(0), *(Watched(number) for number in range(writes))]
    for number in range(1, writes + 1):
        verb, kind = (UPDATE, "MODIFIED") if number > 1 else (CREATE, "ADDED")
        history.written.append(Written(verb, "a", str(number), number - 1, number, number + 0.5, DONE, number))
        history.watched[0].events.append(Seen(kind, "a", number, str(number)))
        history.listed.append(Listed(number + 0.6, number + 0.7, number, {"a": (number, str(number))}))
    return history


def steps(history: History) -> int:
    """How many lines the checker goes through."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        assert violations(history) == []
    finally:
        sys.settrace(outer)
    return count


def test_checking_takes_no_longer_than_the_history_is() -> None:
    assert steps(long_story(800)) < 2.5 * steps(long_story(400))
