"""Selectors of a request are read once, when first asked for."""

from __future__ import annotations

import pytest

from pilothouse.machinery import fields, labels
from pilothouse.machinery.selection import Selection


def test_each_selector_is_read_once_and_on_demand() -> None:
    selection = Selection("a=b", "app=web,!old")
    assert selection.unread == 15
    assert selection.fields is selection.fields
    assert selection.unread == 12
    assert selection.labels is selection.labels
    assert selection.unread == 0
    assert [term.key for term in selection.labels.requirements] == ["app", "old"]


def test_without_selectors_everything_is_selected() -> None:
    selection = Selection("", "")
    assert selection.fields.empty and selection.labels.empty
    assert selection.unread == 0


def test_what_cannot_be_read_is_refused_alike_every_time() -> None:
    selection = Selection("a", "!,")
    for _ in range(2):
        with pytest.raises(fields.SelectorError, match="invalid selector: 'a'"):
            _ = selection.fields
        with pytest.raises(labels.SelectorError):
            _ = selection.labels
    assert selection.unread == 0
