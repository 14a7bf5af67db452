"""The model: one log of versions. A history is right if there is one log that explains everything in it.

- Writes are linearizable: a version is made once; who finished before another began has the lower one; an update or a
  deletion that insisted on a version replaced exactly that; what was refused never shows.
- Watches are ordered, unique and complete: each has all events of the log after its start, up to the last it saw. Its
  bookmarks are true: nothing up to them is missing, nothing at or below them comes later.
- Lists are exact: what is in one is what the log leaves at its version. One that was asked for without a version is no
  older than what was acknowledged before it was asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from pilothouse.testing.model.history import CREATE, DELETE, DONE, REFUSED, History, Listed, Seen, Watched, Written

BOOKMARK = "BOOKMARK"


def violations(history: History) -> list[str]:
    """Everything that no log explains; nothing if all is well."""
    found: list[str] = []
    log = _log(history, found)
    found += _chains(log)
    found += _writes(history, log)
    found += _order(history.written)
    for watched in history.watched:
        found += _watch(watched, log)
    replay = _Replay(log)
    acknowledged = sorted((w.ended, w.version) for w in history.written if w.outcome == DONE)
    for listed in history.listed:
        found += _list(listed, replay, acknowledged)
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


def _order(written: list[Written]) -> Iterator[str]:
    """Who finished before another began comes first."""
    done = [write for write in written if write.outcome == DONE]
    by_end = sorted(done, key=lambda write: write.ended)
    ends = [write.ended for write in by_end]
    highest: list[int] = []
    for write in by_end:
        highest.append(max(write.version, highest[-1] if highest else 0))
    for write in done:
        before = bisect_right(ends, write.started)
        if before and highest[before - 1] >= write.version:
            yield f"{write} came after version {highest[before - 1]} was acknowledged"


def _watch(watched: Watched, log: Log) -> Iterator[str]:
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
    missed = [version for version in log if watched.after < version <= at and version not in seen]
    if missed:
        yield f"a watch from {watched.after} to {at} missed {[str(log[version]) for version in sorted(missed)[:5]]}"


class _Replay:
    """The state that the log leaves at any version, asked for in any order."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._versions = sorted(log)
        self.first = self._versions[0] if self._versions else 0
        self.last = self._versions[-1] if self._versions else 0

    def at(self, version: int) -> dict[str, tuple[int, str]]:
        state: dict[str, tuple[int, str]] = {}
        for each in self._versions[: bisect_right(self._versions, version)]:
            event = self._log[each]
            if event.type == "DELETED":
                state.pop(event.name, None)
            else:
                state[event.name] = (each, event.tag)
        return state


def _list(listed: Listed, replay: _Replay, acknowledged: list[tuple[float, int]]) -> Iterator[str]:
    if listed.version <= replay.last:
        wanted = replay.at(listed.version)
        if listed.items != wanted:
            differing = {name for name in {*wanted, *listed.items} if wanted.get(name) != listed.items.get(name)}
            shown = [(name, wanted.get(name), listed.items.get(name)) for name in sorted(differing)[:5]]
            yield f"a list at {listed.version} differs from the log: (name, log, list) {shown}"
    if not listed.exact:
        before = [version for ended, version in acknowledged if ended <= listed.started]
        if before and max(before) > listed.version:
            yield f"a list at {listed.version} was asked for after version {max(before)} was acknowledged"
