"""How much a store holds, asked from outside while a server may run: only the index of keys is read."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from pilothouse.storage.backends.contract import Unavailable
from pilothouse.storage.backends.sqlite.schema import connect_reader

_OBJECTS = "SELECT COUNT(*) FROM (SELECT MAX(revision), deleted FROM log GROUP BY key) WHERE NOT deleted"


def count_objects(path: str) -> int:
    """The objects in a store. Raises Unavailable."""
    try:
        with closing(connect_reader(path)) as connection:
            return int(connection.execute(_OBJECTS).fetchone()[0])
    except sqlite3.DatabaseError as error:
        raise Unavailable(f"cannot read {path}: {error}") from error


def size(path: str) -> int:
    """Bytes on disk, with what has not found its way into the file yet."""
    return sum(os.path.getsize(each) for each in (path, f"{path}-wal") if os.path.exists(each))
