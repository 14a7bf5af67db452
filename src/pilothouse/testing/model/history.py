"""What clients saw, in the order of one clock: the input of the model.

Every write leaves a tag of its own in the object, so that whoever sees a state knows who made it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

CREATE: Final = "create"
UPDATE: Final = "update"
DELETE: Final = "delete"

DONE: Final = "done"
REFUSED: Final = "refused"
UNKNOWN: Final = "unknown"
"""The connection broke: it may have happened or not."""


@dataclass(slots=True)
class Written:
    """One write: what was asked between two moments, and what came of it."""

    verb: str
    name: str
    tag: str
    """What the object carries afterwards; for a deletion, what names it in reports."""
    expected: int
    """The version the client insisted on; 0 for none."""
    started: float
    ended: float
    outcome: str
    version: int = 0
    """The version that the write made, where that is known."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a watch."""

    type: str
    name: str
    version: int
    tag: str


@dataclass(slots=True)
class Watched:
    """A stretch of a watch without a gap: everything after ``after``, across any number of connections."""

    after: int
    events: list[Seen] = field(default_factory=list)


@dataclass(slots=True)
class Listed:
    """One list: the version it says to be of, and what was in it, as name → (version, tag)."""

    started: float
    ended: float
    version: int
    items: dict[str, tuple[int, str]]
    exact: bool = False
    """Whether it was asked for at this very version, and so may be old."""


@dataclass(slots=True)
class History:
    """Everything that happened. Lists are appended to by many threads; each append is one step."""

    written: list[Written] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
