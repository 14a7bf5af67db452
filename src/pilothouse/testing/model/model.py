"""The model: one log of versions. A history is right if there is one log that explains everything in it.

- Writes are linearizable: a version is made once; who finished before another began has the lower one; an update or a
  deletion that insisted on a version replaced exactly that; what was refused never shows.
- Watches are ordered, unique and complete: each has all events of the log after its start, up to the last it saw. Its
  bookmarks are true: nothing up to them is missing, nothing at or below them comes later.
- Lists are exact: what is in one is what the log leaves at its version. One that was asked for without a version is no
  older than what was acknowledged before it was asked for.

Checking takes as long as the history is, and sorting it: a run of hours is judged in seconds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from pilothouse.testing.model.history import CREATE, DELETE, DONE, REFUSED, History, Listed, Seen, Watched, Written

BOOKMARK = "BOOKMARK"


def violations(history: History) -> list[str]:
    """Everything that no log explains; nothing if all is well."""
    found: list[str] = []
    log = _log(history, found)
    found += _chains(log)
    found += _writes(history, log)
    acknowledged = _Acknowledged(history.written)
    found += _order(history.written, acknowledged)
    versions = sorted(log)
    for watched in history.watched:
        found += _watch(watched, log, versions)
    found += _lists(history.listed, log)
    found += _stale(history.listed, acknowledged)
    return found


Log = dict[int, Seen]


def _log(history: History, found: list[str]) -> Log:
    """What all watches together saw, and what writes were told, by version."""
    log: Log = {}
    for watched in history.watched:
        for event in watched.events:
            if event.type == BOOKMARK:
                continue
            known = log.setdefault(event.version, event)
            if known != event:
                found.append(f"version {event.version} is {known} to one watch and {event} to another")
    return log


def _chains(log: Log) -> Iterator[str]:
    """Each object comes, changes and goes, in that order."""
    present: set[str] = set()
    for version in sorted(log):
        event = log[version]
        if (event.type == "ADDED") == (event.name in present):
            yield f"version {version}: {event} although it was {'there' if event.name in present else 'not there'}"
        (present.discard if event.type == "DELETED" else present.add)(event.name)


def _writes(history: History, log: Log) -> Iterator[str]:
    by_tag: dict[str, Written] = {write.tag: write for write in history.written if write.verb != DELETE}
    reach = max(log, default=0)
    previous: dict[int, int] = {}
    last: dict[str, int] = {}
    for version in sorted(log):
        event = log[version]
        previous[version] = last.get(event.name, 0)
        last[event.name] = 0 if event.type == "DELETED" else version
        if event.type != "DELETED":
            maker = by_tag.get(event.tag)
            if maker is None or maker.outcome == REFUSED:
                yield f"version {version} has the tag {event.tag}, which no write left that may have happened"
    for write in history.written:
        if write.outcome != DONE or write.version > reach:
            continue
        made = log.get(write.version)
        if made is None or made.name != write.name or (write.verb != DELETE and made.tag != write.tag):
            yield f"{write} was acknowledged, and the log has {made}"
        elif write.expected and previous[write.version] != write.expected:
            yield f"{write} replaced version {previous[write.version]}"
        elif write.verb == CREATE and made.type != "ADDED":
            yield f"{write} created what was there"


def _order(written: list[Written], acknowledged: _Acknowledged) -> Iterator[str]:
    """Who finished before another began comes first."""
    for write in written:
        if write.outcome == DONE and acknowledged.at(write.started) >= write.version:
            yield f"{write} came after version {acknowledged.at(write.started)} was acknowledged"


def _stale(lists: list[Listed], acknowledged: _Acknowledged) -> Iterator[str]:
    """Who asks for no version in particular gets all that was acknowledged before."""
    for listed in lists:
        if not listed.exact and (newest := acknowledged.at(listed.started)) > listed.version:
            yield f"a list at {listed.version} was asked for after version {newest} was acknowledged"


def _watch(watched: Watched, log: Log, versions: list[int]) -> Iterator[str]:
    at = watched.after
    seen: set[int] = set()
    for event in watched.events:
        if event.type == BOOKMARK:
            if event.version < at:
                yield f"a bookmark of {event.version} after version {at}"
            at = max(at, event.version)
            continue
        if event.version <= at:
            yield f"{event} after version {at}"
        at = max(at, event.version)
        seen.add(event.version)
    told = versions[bisect_right(versions, watched.after) : bisect_right(versions, at)]
    missed = [version for version in told if version not in seen]
    if missed:
        yield f"a watch from {watched.after} to {at} missed {[str(log[version]) for version in missed[:5]]}"


def _lists(lists: list[Listed], log: Log) -> Iterator[str]:
    """The log is played once, and stops at the version of each list on its way."""
    versions, at = sorted(log), 0
    state: dict[str, tuple[int, str]] = {}
    for listed in sorted(lists, key=lambda listed: listed.version):
        if not versions or listed.version > versions[-1]:
            break
        while at < len(versions) and versions[at] <= listed.version:
            event = log[versions[at]]
            if event.type == "DELETED":
                state.pop(event.name, None)
            else:
                state[event.name] = (event.version, event.tag)
            at += 1
        if listed.items != state:
            differing = {name for name in {*state, *listed.items} if state.get(name) != listed.items.get(name)}
            shown = [(name, state.get(name), listed.items.get(name)) for name in sorted(differing)[:5]]
            yield f"a list at {listed.version} differs from the log: (name, log, list) {shown}"


class _Acknowledged:
    """The highest version that anybody had been told of at any moment."""

    def __init__(self, written: list[Written]) -> None:
        done = sorted((write.ended, write.version) for write in written if write.outcome == DONE)
        self._ends = [ended for ended, _ in done]
        self._highest = list(accumulate((version for _, version in done), max))

    def at(self, moment: float) -> int:
        """0 if nobody had been told anything."""
        before = bisect_right(self._ends, moment)
        return self._highest[before - 1] if before else 0
