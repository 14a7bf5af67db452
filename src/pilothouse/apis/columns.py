"""Table columns that many kinds share, and how their cells are made."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery.objects import Object

_METADATA: Final = "meta.v1.ObjectMeta"


def name_cell(obj: Object) -> str:
    """The object's name."""
    name: str = obj["metadata"].get("name", "")
    return name


def age_cell(obj: Object) -> Age | str:
    """How long ago the object was created."""
    return age_of(obj["metadata"].get("creationTimestamp"))


def created_cell(obj: Object) -> Any:
    """When the object was created; Go's zero time for what never was, such as the object of a bookmark."""
    return obj["metadata"].get("creationTimestamp", "0001-01-01T00:00:00Z")


NAME: Final = Column("Name", "string", name_cell, format="name", description=Doc(_METADATA, "name"))
AGE: Final = Column("Age", "string", age_cell, description=Doc(_METADATA, "creationTimestamp"))
CREATED_AT: Final = Column("Created At", "date", created_cell, description=Doc(_METADATA, "creationTimestamp"))
PLAIN_COLUMNS: Final = (NAME, CREATED_AT)
"""For kinds without columns of their own."""
