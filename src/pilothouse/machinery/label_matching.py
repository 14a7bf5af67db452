"""Tests of labels, made for exactly the requirements of one selector.

A list or a watch tests every object, so a test must cost little whatever the selector: few requirements become one
small function each; many are merged by key, and then a test costs as much as the object has labels, however many
requirements there are:

    a!=1, a!=2, b, c in (x,y), c in (y,z), !d        →   b and c are there; a ∉ {1,2}; c ∈ {y}; d is not
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

IN: Final = "in"
NOT_IN: Final = "notin"
EQUALS: Final = "="
DOUBLE_EQUALS: Final = "=="
NOT_EQUALS: Final = "!="
GREATER_THAN: Final = "gt"
LESS_THAN: Final = "lt"
EXISTS: Final = "exists"
DOES_NOT_EXIST: Final = "!"

FEW: Final = 4
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")

Labels = Mapping[str, str]
Matcher = Callable[[Labels], bool]


class Condition(Protocol):
    """A requirement, as far as matching goes."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> tuple[str, ...]: ...


def always(labels: Labels) -> bool:
    return True


def never(labels: Labels) -> bool:
    return False


def compile_all(requirements: Sequence[Condition]) -> Matcher:
    """The test whether labels meet all requirements."""
    if not requirements:
        return always
    if len(requirements) > FEW:
        return _compile_pairs(requirements) or _compile_merged(requirements)
    if len(requirements) == 1:
        return compile_one(requirements[0])
    if all(r.operator in (EQUALS, DOUBLE_EQUALS) for r in requirements):
        pairs = tuple((r.key, r.values[0]) for r in requirements)
        return lambda labels: _has_all(labels, pairs)
    tests = tuple(map(compile_one, requirements))
    return lambda labels: _meets_all(labels, tests)


def compile_one(requirement: Condition) -> Matcher:
    """The test of one requirement."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator == EXISTS:
        return lambda labels: key in labels
    if operator == DOES_NOT_EXIST:
        return lambda labels: key not in labels
    if operator in (GREATER_THAN, LESS_THAN):
        return _compile_inequality(key, operator == GREATER_THAN, parse_int(values[0]) if len(values) == 1 else None)
    chosen = frozenset(values)
    single = values[0] if len(chosen) == 1 else None
    if operator in (NOT_IN, NOT_EQUALS):
        if single is not None:
            return lambda labels: labels.get(key) != single
        return lambda labels: labels.get(key) not in chosen
    if single is not None:
        return lambda labels: labels.get(key) == single
    return lambda labels: labels.get(key) in chosen


def parse_int(text: str) -> int | None:
    """A 64-bit integer; None for what is none."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -(2**63) <= number < 2**63 else None


def _has_all(labels: Labels, pairs: tuple[tuple[str, str], ...]) -> bool:
    for key, value in pairs:  # noqa: SIM110 - a loop is twice as fast as all() here
        if labels.get(key) != value:
            return False
    return True


def _meets_all(labels: Labels, tests: tuple[Matcher, ...]) -> bool:
    for test in tests:  # noqa: SIM110
        if not test(labels):
            return False
    return True


def _compile_inequality(key: str, greater: bool, limit: int | None) -> Matcher:
    if limit is None:
        return never

    def test(labels: Labels) -> bool:
        value = labels.get(key)
        number = parse_int(value) if value is not None else None
        return number is not None and (number > limit if greater else number < limit)

    return test


class _Merged:
    """All requirements on one key together."""

    __slots__ = ("above", "absent", "allowed", "below", "excluded", "needed")

    def __init__(self) -> None:
        self.needed = False
        self.absent = False
        self.allowed: frozenset[str] | None = None
        self.excluded: set[str] = set()
        self.above: int | None = None
        self.below: int | None = None

    @property
    def is_impossible(self) -> bool:
        return self.needed and (self.absent or (self.allowed is not None and not self.allowed - self.excluded))

    def add(self, operator: str, values: tuple[str, ...]) -> bool:
        """Require this as well; False for what nothing can meet."""
        if operator == DOES_NOT_EXIST:
            self.absent = True
        elif operator in (NOT_IN, NOT_EQUALS):
            self.excluded.update(values)
        else:
            self.needed = True
            if operator in (GREATER_THAN, LESS_THAN):
                return self._limit(operator, parse_int(values[0]) if len(values) == 1 else None)
            if operator != EXISTS:
                self.allowed = frozenset(values) if self.allowed is None else self.allowed.intersection(values)
        return True

    def _limit(self, operator: str, limit: int | None) -> bool:
        if limit is None:
            return False
        if operator == GREATER_THAN:
            self.above = limit if self.above is None else max(self.above, limit)
        else:
            self.below = limit if self.below is None else min(self.below, limit)
        return True

    def takes(self, value: str) -> bool:
        """Whether the key may have this value."""
        if self.absent or value in self.excluded or (self.allowed is not None and value not in self.allowed):
            return False
        if self.above is None and self.below is None:
            return True
        number = parse_int(value)
        return (
            number is not None
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
        )


def _compile_pairs(requirements: Sequence[Condition]) -> Matcher | None:
    """The test whether labels have these values, where nothing else is required: it takes a tenth of the memory."""
    pairs = {r.key: r.values[0] for r in requirements if r.operator in (EQUALS, DOUBLE_EQUALS)}
    if len(pairs) < len(requirements):
        return None
    wanted = pairs.items()
    return lambda labels: wanted <= labels.items()


def _compile_merged(requirements: Sequence[Condition]) -> Matcher:
    merged: dict[str, _Merged] = {}
    for requirement in requirements:
        condition = merged.get(requirement.key)
        if condition is None:
            condition = merged[requirement.key] = _Merged()
        if not condition.add(requirement.operator, requirement.values):
            return never
    if any(condition.is_impossible for condition in merged.values()):
        return never
    needed = frozenset(key for key, condition in merged.items() if condition.needed)

    def test(labels: Labels) -> bool:
        if not labels.keys() >= needed:
            return False
        if len(labels) <= len(merged):
            return all(merged[key].takes(value) for key, value in labels.items() if key in merged)
        return all(condition.takes(labels[key]) for key, condition in merged.items() if key in labels)

    return test
