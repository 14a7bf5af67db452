"""What all that a selector matches has in common: one value of one field, or of one label.

Watches are found by it when something changes (`audience.py`), and entries when somebody lists (`value_indexes.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from pilothouse.machinery.fields import Selector as FieldSelector
from pilothouse.machinery.labels import Selector
from pilothouse.storage.cacher.entries import Entry, field_value


class Attribute(NamedTuple):
    """A field or a label that entries can be told apart by."""

    name: str
    is_label: bool = False

    def of(self, entry: Entry) -> str | None:
        """Its value, as it is stored; a field always has one, a label that is missing has none."""
        return entry.labels.get(self.name) if self.is_label else field_value(entry, self.name)


class Trait(NamedTuple):
    """One value of an attribute."""

    attribute: Attribute
    value: str


def trait_of(labels: Selector | None, fields: FieldSelector | None) -> Trait | None:
    """A trait of everything that matches both selectors; None where neither requires one value of anything."""
    if fields is not None and (required := fields.exact_requirement()) is not None:
        return Trait(Attribute(required[0]), required[1])
    if labels is not None and (required := labels.exact_requirement()) is not None:
        return Trait(Attribute(required[0], is_label=True), required[1])
    return None
