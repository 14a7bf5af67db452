"""Label selectors: their text form, their object form, and matching.

``parse`` reads what clients put into ``?labelSelector=`` and fails with kube-apiserver's words; ``from_object`` turns a
``LabelSelector`` of an object into the same ``Selector``. A selector is immutable, its requirements are sorted by key,
and ``selector.matches(labels)`` is a function made for exactly these requirements, because a list or a watch calls it
once for every object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pilothouse.machinery import field_errors
from pilothouse.machinery.field_errors import FieldError, Named, Path, aggregate
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.label_matching import (
    DOES_NOT_EXIST,
    DOUBLE_EQUALS,
    EQUALS,
    EXISTS,
    GREATER_THAN,
    IN,
    LESS_THAN,
    NOT_EQUALS,
    NOT_IN,
    Labels,
    Matcher,
    compile_all,
    never,
    parse_int,
)
from pilothouse.machinery.names import check_label_key, check_label_value
from pilothouse.machinery.piecewise import in_order, in_order_by

_BINARY: Final = (IN, NOT_IN, EQUALS, DOUBLE_EQUALS, NOT_EQUALS, GREATER_THAN, LESS_THAN)
_OPERATORS: Final = (*_BINARY, EXISTS, DOES_NOT_EXIST)
_SHOWN: Final = {IN: " in ", NOT_IN: " notin ", GREATER_THAN: ">", LESS_THAN: "<"}
_OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": DOES_NOT_EXIST}

# A NUL ends the text, unless it directly follows a token: that is how kube-apiserver's reader sees it.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n\0]+))\0?")


class SelectorError(ValueError):
    """A selector that cannot be understood; its message is what clients see."""


class Requirement(NamedTuple):
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether it requires one value."""
        return self.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(self.values) == 1

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        listed = ",".join(sorted(self.values))
        if self.operator in (IN, NOT_IN):
            listed = f"({listed})"
        return f"{self.key}{_SHOWN.get(self.operator, self.operator)}{listed}"


class Selector:
    """Requirements that labels must all meet. ``matches`` is the compiled test."""

    __slots__ = ("matches", "requirements", "selectable")

    def __init__(self, requirements: Iterable[Requirement] = (), *, selectable: bool = True) -> None:
        self.requirements = tuple(in_order_by(_key_of, tuple(requirements)))
        self.selectable = selectable
        self.matches: Matcher = compile_all(self.requirements) if selectable else never

    @property
    def empty(self) -> bool:
        """Whether it selects everything because it requires nothing."""
        return self.selectable and not self.requirements

    def exact_value(self, key: str) -> str | None:
        """The one value that the selector requires of a label, if it does."""
        for requirement in self.requirements:
            if requirement.key == key:
                return requirement.values[0] if requirement.is_exact else None
        return None

    def exact_requirement(self) -> tuple[str, str] | None:
        """A label of which the selector requires one value, and that value; None where there is no such label."""
        for requirement in self.requirements:
            if requirement.is_exact:
                return requirement.key, requirement.values[0]
        return None

    def adding(self, *requirements: Requirement) -> Selector:
        """A selector that requires this as well."""
        return Selector((*self.requirements, *requirements)) if self.selectable else self

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})" if self.selectable else "Selector(nothing)"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Selector)
            and self.selectable == other.selectable
            and self.requirements == other.requirements
        )

    def __hash__(self) -> int:
        return hash((self.selectable, self.requirements))


def _key_of(requirement: Requirement) -> str:
    return requirement.key


__all__ = [
    "DOES_NOT_EXIST", "DOUBLE_EQUALS", "EQUALS", "EVERYTHING", "EXISTS", "GREATER_THAN", "IN", "LESS_THAN", "NOTHING",
    "NOT_EQUALS", "NOT_IN", "Labels", "Matcher", "Requirement", "Selector", "SelectorError", "format_object",
    "from_labels", "from_object", "new_requirement", "parse", "validate_labels", "validate_object",
]  # fmt: skip

EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selectable=False)


def new_requirement(
    key: str, operator: str, values: Sequence[str] = (), path: Path | None = None
) -> tuple[Requirement, list[FieldError]]:
    """A requirement and everything that is wrong with it."""
    values_path = path.child("values") if path else Path("values")
    errors: list[FieldError] = []
    if messages := check_label_key(key):
        errors.append(field_errors.invalid(path.child("key") if path else Path("key"), key, "; ".join(messages)))
    if operator not in _OPERATORS:
        where = path.child("operator") if path else Path("operator")
        errors.append(field_errors.not_supported(where, operator, _OPERATORS))
    elif count := _check_count(operator, len(values)):
        errors.append(field_errors.invalid(values_path, list(values) or None, count))
    if operator in (GREATER_THAN, LESS_THAN):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values):
            if parse_int(value) is None:
                errors.append(field_errors.invalid(values_path.index(index), value, detail))
    for index, value in enumerate(values):
        if messages := check_label_value(value):
            where = values_path.index(index).key(key)
            errors.append(field_errors.invalid(where, value, "; ".join(messages)))
    return Requirement(key, operator, tuple(values)), errors


def _check_count(operator: str, count: int) -> str:
    if operator in (IN, NOT_IN):
        return "" if count else "for 'in', 'notin' operators, values set can't be empty"
    if operator in (EXISTS, DOES_NOT_EXIST):
        return "values set must be empty for exists and does not exist" if count else ""
    if count == 1:
        return ""
    if operator in (GREATER_THAN, LESS_THAN):
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return "exact-match compatibility requires one single value"


def parse(text: str, path: Path | None = None) -> Selector:
    """Read a selector like ``app=web,tier in (a,b),!old``, or raise ``SelectorError``."""
    return Selector(_Parser(text, path).run()) if text else EVERYTHING


def from_labels(labels: Labels) -> Selector:
    """The selector that requires exactly these labels, unchecked."""
    return Selector(Requirement(key, EQUALS, (value,)) for key, value in labels.items())


def from_object(selector: Mapping[str, Any] | None) -> Selector:
    """A ``LabelSelector``: without one nothing matches, an empty one matches everything."""
    if selector is None:
        return NOTHING
    match_labels: Mapping[str, str] = selector.get("matchLabels") or {}
    expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
    if not match_labels and not expressions:
        return EVERYTHING
    requirements = [_required(key, EQUALS, (value,)) for key, value in match_labels.items()]
    for expression in expressions:
        operator = _OBJECT_OPERATORS.get(expression.get("operator") or "")
        if operator is None:
            raise SelectorError(f"{quote(expression.get('operator') or '')} is not a valid label selector operator")
        requirements.append(_required(expression.get("key") or "", operator, expression.get("values") or ()))
    return Selector(requirements)


def format_object(selector: Mapping[str, Any] | None) -> str:
    """A ``LabelSelector`` as tables show it; ``<none>`` if its text is empty."""
    try:
        return str(from_object(selector)) or "<none>"
    except SelectorError:
        return "<error>"


def _required(key: str, operator: str, values: Sequence[str]) -> Requirement:
    requirement, errors = new_requirement(key, operator, values)
    if errors:
        raise SelectorError(aggregate(map(str, errors)))
    return requirement


class _Parser:
    """Recursive descent over tokens; ``in`` and ``notin`` are operators only where one is expected."""

    def __init__(self, text: str, path: Path | None) -> None:
        self.path = path
        self.at = 0
        self.tokens = _tokenize(text)

    def run(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            symbol, literal = self.tokens[self.at]
            if not literal:
                return requirements
            if symbol not in ("", "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            symbol, literal = self._next()
            if not literal:
                return requirements
            if symbol != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            symbol, literal = self.tokens[self.at]
            if symbol not in ("", "!") or not literal:
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def _next(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def _requirement(self) -> Requirement:
        symbol, key = self._next()
        negated = symbol == "!"
        if negated:
            symbol, key = self._next()
        if symbol or not key:
            raise SelectorError(f"found '{key}', expected: identifier")
        if messages := check_label_key(key):
            raise SelectorError(str(field_errors.invalid(self.path, key, "; ".join(messages))))
        symbol, literal = self.tokens[self.at]
        if negated:
            return self._checked(key, DOES_NOT_EXIST, [])
        if symbol == "," or not literal:
            return self._checked(key, EXISTS, [])
        operator = self._operator()
        values = self._value_set() if operator in (IN, NOT_IN) else self._exact_value()
        return self._checked(key, operator, in_order(list(values)))

    def _checked(self, key: str, operator: str, values: list[str]) -> Requirement:
        requirement, errors = new_requirement(key, operator, values, self.path)
        if errors:
            raise SelectorError(aggregate(map(str, errors)))
        return requirement

    def _operator(self) -> str:
        symbol, literal = self._next()
        if symbol == ">":
            return GREATER_THAN
        if symbol == "<":
            return LESS_THAN
        if symbol in (EQUALS, DOUBLE_EQUALS, NOT_EQUALS) or (not symbol and literal in (IN, NOT_IN)):
            return literal
        raise SelectorError(f"found '{literal}', expected: {', '.join(_BINARY)}")

    def _exact_value(self) -> set[str]:
        symbol, literal = self.tokens[self.at]
        if symbol == "," or not literal:
            return {""}
        self.at += 1
        if symbol:
            raise SelectorError(f"found '{literal}', expected: identifier")
        return {literal}

    def _value_set(self) -> set[str]:
        symbol, literal = self._next()
        if symbol != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        symbol, literal = self.tokens[self.at]
        if symbol == ")":
            self.at += 1
            return {""}
        if symbol not in ("", ",") or not literal:
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        return self._listed_values()

    def _listed_values(self) -> set[str]:
        """Values up to the closing parenthesis; an empty place between commas is the empty value."""
        values: set[str] = set()
        while True:
            symbol, literal = self._next()
            following, shown = self.tokens[self.at] if literal else ("", "")
            if not symbol and literal:
                values.add(literal)
                if following not in (",", ")"):
                    raise SelectorError(f"found '{shown}', expected: ',' or ')'")
            elif symbol == ",":
                if not values or following in (",", ")"):
                    values.add("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")
            if following == ")":
                self.at += 1
                return values


def _tokenize(text: str) -> list[tuple[str, str]]:
    """Pairs of symbol and literal; identifiers have no symbol, the end has neither."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while match := _TOKEN.match(text, at):
        symbol, identifier = match.groups()
        tokens.append((symbol or "", symbol or identifier))
        at = match.end()
    tokens.append(("", ""))
    return tokens


def validate_object(
    selector: Mapping[str, Any] | None, path: Path, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """Everything that is wrong with a ``LabelSelector`` of an object."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, path.child("matchLabels"))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        where = path.child("matchExpressions").index(index)
        errors.extend(_validate_expression(expression, where, allow_invalid_values))
    return errors


def validate_labels(labels: Labels, path: Path) -> list[FieldError]:
    """Everything that is wrong with an object's labels."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors.extend(field_errors.invalid(path, key, message) for message in check_label_key(key))
        errors.extend(field_errors.invalid(path, value, message) for message in check_label_value(value))
    return errors


def _validate_expression(expression: Mapping[str, Any], path: Path, allow_invalid_values: bool) -> list[FieldError]:
    operator, key = expression.get("operator") or "", expression.get("key") or ""
    values = expression.get("values") or ()
    errors: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            errors.append(field_errors.required(path.child("values"), detail))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(field_errors.forbidden(path.child("values"), detail))
    else:
        errors.append(field_errors.invalid(path.child("operator"), Named(operator), "not a valid selector operator"))
    errors.extend(field_errors.invalid(path.child("key"), key, message) for message in check_label_key(key))
    for index, value in enumerate(() if allow_invalid_values else values):
        where = path.child("values").index(index)
        errors.extend(field_errors.invalid(where, value, message) for message in check_label_value(value))
    return errors
