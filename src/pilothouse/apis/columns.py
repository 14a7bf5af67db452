"""Table columns that many kinds share, and how their cells are made."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.strategy import Column, Doc, Object
from pilothouse.machinery import times

_METADATA: Final = "meta.v1.ObjectMeta"


def name_cell(obj: Object) -> str:
    """The object's name."""
    name: str = obj["metadata"].get("name", "")
    return name


def age_cell(obj: Object) -> str:
    """How long ago the object was created, as people read it."""
    return age_of(obj["metadata"].get("creationTimestamp"))


def age_of(timestamp: str | None) -> str:
    """How long ago a time was; ``<unknown>`` without one."""
    return times.age(timestamp, times.now_instant())


def created_cell(obj: Object) -> Any:
    """When the object was created."""
    return obj["metadata"].get("creationTimestamp", "<unknown>")


NAME: Final = Column("Name", "string", name_cell, format="name", description=Doc(_METADATA, "name"))
AGE: Final = Column("Age", "string", age_cell, description=Doc(_METADATA, "creationTimestamp"))
CREATED_AT: Final = Column("Created At", "date", created_cell, description=Doc(_METADATA, "creationTimestamp"))
PLAIN_COLUMNS: Final = (NAME, CREATED_AT)
"""For kinds without columns of their own."""
