"""Which of many entries match selectors: one requirement after the other, each over all that are left.

A test for each entry by call costs most of a microsecond, and a list tests thousands. Here a requirement is one loop
with its comparison inside, several times as fast, and those that follow see only what is left. Where there are many
requirements they are merged, and each entry is tested once.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery import labels
from pilothouse.machinery.fields import Condition
from pilothouse.machinery.fields import Selector as FieldSelector
from pilothouse.machinery.label_matching import FEW
from pilothouse.machinery.labels import Requirement, Selector
from pilothouse.net.work_turns import request_turns
from pilothouse.storage.cacher.entries import Entry

TURN: Final = 2000
"""How many entries are tested at one place in a turn of the loop."""


def select(entries: list[Entry], wanted: Selector | None, fields: FieldSelector | None) -> list[Entry]:
    """The entries that match both selectors, in order."""
    if fields is not None:
        for condition in fields.conditions:
            entries = _by_field(entries, condition)
    if wanted is None:
        return entries
    if not wanted.selectable:
        return []
    if len(wanted.requirements) > FEW:
        matches = wanted.matches
        return [entry for entry in entries if matches(entry.labels)]
    for requirement in wanted.requirements:
        entries = _by_label(entries, requirement)
    return entries


async def select_in_turns(entries: list[Entry], wanted: Selector | None, fields: FieldSelector | None) -> list[Entry]:
    """The same of any number of entries, without holding the loop: others get their turns in between."""
    if len(entries) <= TURN:
        return select(entries, wanted, fields)
    chosen: list[Entry] = []
    turns = request_turns()
    for first in range(0, len(entries), TURN):
        await turns.take()
        chosen += select(entries[first : first + TURN], wanted, fields)
    return chosen


def _by_label(entries: list[Entry], requirement: Requirement) -> list[Entry]:
    key, operator, values = requirement
    if operator == labels.EXISTS:
        return [entry for entry in entries if key in entry.labels]
    if operator == labels.DOES_NOT_EXIST:
        return [entry for entry in entries if key not in entry.labels]
    if operator in (labels.GREATER_THAN, labels.LESS_THAN):
        matches = Selector((requirement,)).matches
        return [entry for entry in entries if matches(entry.labels)]
    excluded = operator in (labels.NOT_IN, labels.NOT_EQUALS)
    if len(values) == 1:
        value = values[0]
        if excluded:
            return [entry for entry in entries if entry.labels.get(key) != value]
        return [entry for entry in entries if entry.labels.get(key) == value]
    chosen = frozenset(values)
    if excluded:
        return [entry for entry in entries if entry.labels.get(key) not in chosen]
    return [entry for entry in entries if entry.labels.get(key) in chosen]


def _by_field(entries: list[Entry], condition: Condition) -> list[Entry]:
    field, wanted, excluded = condition
    takes = condition.takes
    if field == "metadata.name":
        return [entry for entry in entries if takes(entry.name)]
    if field == "metadata.namespace":
        return [entry for entry in entries if takes(entry.namespace)]
    if wanted is not None and len(wanted) == 1 and not excluded:
        (value,) = wanted
        return [entry for entry in entries if entry.fields.get(field, "") == value]
    return [entry for entry in entries if takes(entry.fields.get(field, ""))]
