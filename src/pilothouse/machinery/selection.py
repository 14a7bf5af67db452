"""What a request is limited to by field and by label: two texts, each read once however many ask for its meaning.

Selectors may be long, and some requests are decided without a look at them. So nothing is read before somebody asks,
and ``unread`` tells how much text the next one to ask would have to read.
"""

from __future__ import annotations

from typing import TypeVar

from pilothouse.machinery import fields, labels

E = TypeVar("E", bound=Exception)


class Selection:
    """The selectors of one request. What cannot be understood raises an equal ``SelectorError`` every time.

    Never the one that is kept: it would know the frames it went through, and they the selection.
    """

    __slots__ = ("_fields", "_labels", "by_field", "by_label")

    def __init__(self, by_field: str, by_label: str) -> None:
        self.by_field, self.by_label = by_field, by_label
        self._fields: fields.Selector | fields.SelectorError | None = None
        self._labels: labels.Selector | labels.SelectorError | None = None

    @property
    def unread(self) -> int:
        """The length of what nobody has asked for yet."""
        by_field = len(self.by_field) if self._fields is None else 0
        return by_field + (len(self.by_label) if self._labels is None else 0)

    @property
    def fields(self) -> fields.Selector:
        """What objects are selected by field."""
        found = self._fields
        if found is None:
            try:
                found = fields.parse(self.by_field)
            except fields.SelectorError as error:
                found = _copy_of(error)
            self._fields = found
        if isinstance(found, fields.SelectorError):
            raise _copy_of(found)
        return found

    @property
    def labels(self) -> labels.Selector:
        """What objects are selected by label."""
        found = self._labels
        if found is None:
            try:
                found = labels.parse(self.by_label)
            except labels.SelectorError as error:
                found = _copy_of(error)
            self._labels = found
        if isinstance(found, labels.SelectorError):
            raise _copy_of(found)
        return found

    def check_labels(self) -> None:
        """Raise what is wrong with the label selector."""
        if self.by_label:
            _ = self.labels


def _copy_of(error: E) -> E:
    return type(error)(*error.args)
