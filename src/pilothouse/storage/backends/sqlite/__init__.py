"""The embedded store: one SQLite file, durable, shared safely by several processes on one machine."""

from pilothouse.storage.backends.sqlite.backend import SQLiteBackend
from pilothouse.storage.backends.sqlite.beacon import beacon_of
from pilothouse.storage.backends.sqlite.damage import Repaired, Report, examine, repair, snapshot
from pilothouse.storage.backends.sqlite.figures import count_objects, size
from pilothouse.storage.backends.sqlite.retention import Retention

__all__ = [
    "Repaired",
    "Report",
    "Retention",
    "SQLiteBackend",
    "beacon_of",
    "count_objects",
    "examine",
    "repair",
    "size",
    "snapshot",
]
