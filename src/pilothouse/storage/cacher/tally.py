"""What the cache of one resource counts about itself; whoever shows it gives it the name of the resource."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pilothouse.machinery.observations import Observations

LOAD_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600)
WAIT_BUCKETS: Final = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3)


@dataclass(slots=True)
class ListTally:
    """Lists that were answered from one place."""

    lists: int = 0
    seen: int = 0
    """Objects that were looked at."""
    returned: int = 0


@dataclass(slots=True)
class CacheTally:
    """All of it."""

    events: int = 0
    """Changes that came from the store, each of which was dispatched to all who watch."""
    initial_events: int = 0
    """Objects that streamed lists began with."""
    decode_errors: int = 0
    loads: Observations = field(default_factory=lambda: Observations(LOAD_BUCKETS))
    waits: Observations = field(default_factory=lambda: Observations(WAIT_BUCKETS))
    """Seconds that reads had to wait until the cache was as new as they asked for."""
    consistent_reads: int = 0
    """Reads for which the store was asked how new it is."""
    failed_reads: int = 0
    """Those of them that did not come to see it."""
    cached_lists: ListTally = field(default_factory=ListTally)
    stored_lists: ListTally = field(default_factory=ListTally)
    """Lists of the past, read from the store."""
