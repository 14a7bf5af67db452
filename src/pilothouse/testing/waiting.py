"""Waiting for something to be so, with a failure that says what was there instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import yaml

from pilothouse.machinery.objects import Object

PATIENCE_SECONDS: Final = 60.0
"""How long a condition is waited for: a test that needs this much has failed, however busy the machine."""
_FIRST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.25
_SHOWN_LINES: Final = 60

T = TypeVar("T")


def wait(look: Callable[[], tuple[bool, T]], what: str, seconds: float, describe: Callable[[T], str]) -> T:
    """Look, ever more seldom, until the first of the two is true; the second then. Raises AssertionError."""
    deadline, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        is_so, seen = look()
        if is_so:
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}; last seen:\n{describe(seen)}")
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.5)


def until(find: Callable[[], T], seconds: float = 120.0, pause: float = 0.01) -> T:
    """What ``find`` gives once that is true, asked often enough to see what lasts a moment. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s; last seen: {found!r}"
        time.sleep(pause)
    return found


def describe(obj: Object, events: Sequence[Object] = ()) -> str:
    """What helps to see why an object is not as it should be: conditions and events first, then all of it."""
    if not obj:
        return "  there is no such object"
    lines = [f"  {_name(obj)}"]
    for each in (obj.get("status") or {}).get("conditions") or ():
        why = " ".join(filter(None, (each.get("reason"), each.get("message"))))
        lines.append(f"  condition {each.get('type')}={each.get('status')} {why}".rstrip())
    if obj["metadata"].get("deletionTimestamp"):
        lines.append(f"  is being deleted; finalizers: {obj['metadata'].get('finalizers') or 'none'}")
    for event in events:
        times = event.get("count") or 1
        lines.append(f"  event {event.get('type')} {event.get('reason')} x{times}: {event.get('message')}")
    shown = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    body = yaml.safe_dump(shown, sort_keys=False).splitlines()
    lines += (f"    {line}" for line in body[:_SHOWN_LINES])
    if len(body) > _SHOWN_LINES:
        lines.append(f"    … {len(body) - _SHOWN_LINES} more lines")
    return "\n".join(lines)


def _name(obj: Object) -> str:
    metadata = obj["metadata"]
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind', 'object')} {where}{metadata['name']}"
