"""Field selectors: ``metadata.name=web,status.phase!=Running``.

``parse`` reads what clients put into ``?fieldSelector=``. Values may hold commas, equals signs and backslashes if they
are escaped with a backslash. A resource decides which fields it knows: ``Selector.transform`` passes every pair through
its function, which returns the internal pair or raises; a pair of two empty texts drops the requirement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

EQUALS: Final = "="
NOT_EQUALS: Final = "!="

_TERM = re.compile(r"(?:[^\\,]++|\\.)*+\\?", re.DOTALL)
_OPERATOR = re.compile(r"!=|==|=")
_ESCAPED = re.compile(r"[\\,=]")

Transform = Callable[[str, str], tuple[str, str]]


class SelectorError(ValueError):
    """A selector that cannot be understood; its message is what clients see."""


class Requirement(NamedTuple):
    """One condition on one field; a field that is missing has the empty value."""

    field: str
    operator: str
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{escape(self.value)}"


class Condition(NamedTuple):
    """All requirements on one field together: the values it may have (None: any), and those it must not have."""

    field: str
    wanted: frozenset[str] | None
    excluded: frozenset[str]

    def takes(self, value: str) -> bool:
        """Whether the field may have this value."""
        return (self.wanted is None or value in self.wanted) and value not in self.excluded


class Selector:
    """Requirements that an object's fields must all meet."""

    __slots__ = ("_conditions", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        self.requirements = tuple(requirements)
        self._conditions: tuple[Condition, ...] | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """One for each field: with many requirements a test still costs no more than there are fields."""
        if self._conditions is None:
            self._conditions = _merge(self.requirements)
        return self._conditions

    @property
    def empty(self) -> bool:
        """Whether it selects everything because it requires nothing."""
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(condition.takes(fields.get(condition.field, "")) for condition in self.conditions)

    def exact_value(self, field: str) -> str | None:
        """The one value that the selector requires of a field, if it does."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == EQUALS:
                return requirement.value
        return None

    def exact_requirement(self) -> tuple[str, str] | None:
        """A field of which the selector requires one value, and that value; None where there is no such field."""
        for requirement in self.requirements:
            if requirement.operator == EQUALS:
                return requirement.field, requirement.value
        return None

    def transform(self, function: Transform) -> Selector:
        """The selector in other names and values; what the function raises passes through."""
        changed: list[Requirement] = []
        for requirement in self.requirements:
            field, value = function(requirement.field, requirement.value)
            if field or value:
                changed.append(Requirement(field, requirement.operator, value))
        return Selector(changed)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)


def _merge(requirements: Iterable[Requirement]) -> tuple[Condition, ...]:
    wanted: dict[str, set[str]] = {}
    excluded: dict[str, set[str]] = {}
    for field, operator, value in requirements:
        (wanted if operator == EQUALS else excluded).setdefault(field, set()).add(value)
    merged: list[Condition] = []
    for field in wanted | excluded:
        values = wanted.get(field)
        # Two values at once is what no field has.
        allowed = None if values is None else frozenset(values if len(values) == 1 else ())
        merged.append(Condition(field, allowed, frozenset(excluded.get(field, ()))))
    return tuple(merged)


EVERYTHING: Final = Selector()


def exactly(field: str, value: str) -> Selector:
    """The selector of one field with one value."""
    return Selector((Requirement(field, EQUALS, value),))


def parse(text: str, transform: Transform | None = None) -> Selector:
    """Read a selector, or raise ``SelectorError``; terms come in the order of their text."""
    if not text:
        return EVERYTHING
    requirements = [_parse_term(text, term) for term in sorted(_split(text)) if term]
    selector = Selector(requirements)
    return selector.transform(transform) if transform else selector


def escape(value: str) -> str:
    """The value as a selector has to spell it."""
    return _ESCAPED.sub(r"\\\g<0>", value)


def unescape(text: str) -> str:
    """The value a selector's text stands for."""
    if not _ESCAPED.search(text):
        return text
    parts: list[str] = []
    chars = iter(text)
    for char in chars:
        if char == "\\":
            char = next(chars, "")
            if not char or char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
        elif char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        parts.append(char)
    return "".join(parts)


def _split(text: str) -> list[str]:
    terms: list[str] = []
    at = 0
    while True:
        match = _TERM.match(text, at)
        end = match.end() if match else at
        terms.append(text[at:end])
        if end >= len(text):
            return terms
        at = end + 1


def _parse_term(text: str, term: str) -> Requirement:
    match = _OPERATOR.search(term)
    if match is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    operator = NOT_EQUALS if match[0] == NOT_EQUALS else EQUALS
    return Requirement(term[: match.start()], operator, unescape(term[match.end() :]))
