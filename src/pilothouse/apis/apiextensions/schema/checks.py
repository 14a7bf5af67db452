"""Is a value valid? A schema compiled into functions that only say yes or no.

Nearly all objects are valid, so this answer comes first and costs little: types are compared by class, branches without
rules are never entered, patterns are compiled once. Only when the answer is no does ``values`` walk the object
again, slowly, to say why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, Final

from pilothouse.apis.apiextensions.schema import formats
from pilothouse.apis.apiextensions.schema.nodes import Schema
from pilothouse.machinery.patterns import PatternError, compile_pattern
from pilothouse.machinery.workers import ABANDONED, PATIENCE, checkpoint

Check = Callable[[Any], bool]
_SAFE: Final = (1 << 53) - 1
_INT64: Final = 1 << 63
_JSON_CLASSES: Final = {
    "string": (str,), "boolean": (bool,), "object": (dict,), "array": (list,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types a schema allows."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type", "")
    return (kind,) if kind else ()


def format_of(schema: Schema) -> str:
    """The schema's format where it means anything."""
    name: str = schema.get("format", "")
    if not name:
        return ""
    kinds = types_of(schema)
    kind = kinds[0] if len(kinds) == 1 else ""
    if kind in ("", "string"):
        return name if formats.normalize(name) in formats.SUPPORTED else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    return name if name in allowed else ""


def is_whole(value: float) -> bool:
    """Whether a float counts as an integer."""
    if value != value or not -_SAFE <= value <= _SAFE:
        return False
    difference = abs(value - int(value))
    return difference == 0 or difference < 1e-9


def as_go_number(value: Any) -> Any:
    """Integers beyond 64 bits are floats to kube-apiserver."""
    return value if value.__class__ is not int or -_INT64 <= value < _INT64 else float(value)


def accept(value: Any) -> bool:
    """The check of a schema that says nothing."""
    return True


def compile_check(schema: Schema) -> Check:
    """The check of a schema; ``accept`` where everything is valid."""
    by_class: dict[type, Check | None] = {}
    kinds = types_of(schema)
    format = format_of(schema)
    enum = schema.get("enum")
    combined = _compile_combinations(schema)
    null_fits = (not kinds or bool(schema.get("nullable"))) and not enum
    for kind in (str, bool, dict, list, int, float):
        by_class[kind] = _compile_class(schema, kind, kinds, format, enum)
    if combined is None and null_fits and all(check is accept for check in by_class.values()):
        return accept

    def check(value: Any) -> bool:
        if value is None:
            return null_fits
        own = by_class[value.__class__]
        if own is None or (own is not accept and not own(value)):
            return False
        return combined is None or combined(value)

    return check


def _compile_class(
    schema: Schema, kind: type, kinds: tuple[str, ...], format: str, enum: list[Any] | None
) -> Check | None:
    """The check of values of one class, None where they are never valid."""
    checks: list[Check] = []
    if not _class_fits(kind, kinds, format):
        return None
    if kind in (int, float) and (kinds or format):
        checks.append(_number_type(kinds, format))
    builder = {str: _string_checks, int: _number_checks, float: _number_checks, list: _list_checks, dict: _map_checks}
    if kind in builder:
        checks += builder[kind](schema)
    if enum:
        checks.append(Enum(enum).__contains__)
    return all_of(checks)


def _class_fits(kind: type, kinds: tuple[str, ...], format: str) -> bool:
    if not kinds and not format:
        return True
    if format and kind in (str, list) and not {"integer", "number"} & set(kinds):
        return True
    if kind is float and "integer" in kinds:
        return True
    return any(kind in _JSON_CLASSES[name] for name in kinds if name in _JSON_CLASSES)


def _number_type(kinds: tuple[str, ...], format: str) -> Check:
    integer = "integer" in kinds and "number" not in kinds
    exact = kinds == ("integer",)
    narrow = format == "int32"
    single = format == "float"

    def check(value: Any) -> bool:
        value = as_go_number(value)
        if integer and value.__class__ is float and not (is_whole(value) and (not exact or value == int(value))):
            return False
        if narrow:
            return bool(-(1 << 31) <= value < 1 << 31)
        return not single or bool(abs(value) <= 3.4028235677973366e38)

    return check


def all_of(checks: list[Check]) -> Check:
    """One check for several."""
    checks = [check for check in checks if check is not accept]
    if not checks:
        return accept
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)

    def check(value: Any) -> bool:
        for each in checks:  # noqa: SIM110 - a generator for every value costs more than most checks
            if not each(value):
                return False
        return True

    return check


def _length_checks(most: Any, least: Any) -> list[Check]:
    checks: list[Check] = []
    if most is not None:
        checks.append(lambda value: len(value) <= most)
    if least is not None:
        checks.append(lambda value: len(value) >= least)
    return checks


def _string_checks(schema: Schema) -> list[Check]:
    checks, pattern = _length_checks(schema.get("maxLength"), schema.get("minLength")), schema.get("pattern")
    if pattern:
        try:
            search = compile_pattern(pattern).search
            checks.append(lambda value: search(value) is not None)
        except PatternError:
            checks.append(lambda value: False)
    format = format_of(schema)
    if format and formats.is_known(format):
        checks.append(formats.checker(format))
    return checks


def _number_checks(schema: Schema) -> list[Check]:
    limits = [schema.get(key) for key in ("maximum", "minimum", "multipleOf")]
    if limits == [None, None, None]:
        return []
    from pilothouse.apis.apiextensions.schema.values import explain_number

    surely = _surely_within(schema)

    def check(value: Any) -> bool:
        if value.__class__ is int and value in surely:
            return True
        return not explain_number(schema, as_go_number(value), "").errors

    return [check]


def _surely_within(schema: Schema) -> range:
    """Integers that are within the limits of a schema beyond doubt; none where its limits are of another kind."""
    bits = 31 if schema.get("format") == "int32" else 63
    least, most = schema.get("minimum", -1 << bits), schema.get("maximum", (1 << bits) - 1)
    plain = least.__class__ is int and most.__class__ is int and -1 << bits <= least <= most < 1 << bits
    if not plain or schema.get("multipleOf") is not None:
        return range(0)
    return range(least + bool(schema.get("exclusiveMinimum")), most + (not schema.get("exclusiveMaximum")))


def _list_checks(schema: Schema) -> list[Check]:
    checks, items = _length_checks(schema.get("maxItems"), schema.get("minItems")), schema.get("items")
    if isinstance(items, dict):
        item = compile_check(items)
        if item is not accept:
            checks.append(lambda value: all(map(item, value)))
    return checks


def _map_checks(schema: Schema) -> list[Check]:
    checks = _length_checks(schema.get("maxProperties"), schema.get("minProperties"))
    if required := schema.get("required"):
        wanted = frozenset(required)
        checks.append(lambda value: wanted <= value.keys())
    named = {name: compile_check(child) for name, child in (schema.get("properties") or {}).items()}
    below = {name: check for name, check in named.items() if check is not accept}
    additional = schema.get("additionalProperties")
    if additional is False:
        checks.append(lambda value: value.keys() <= named.keys())
    rest = compile_check(additional) if isinstance(additional, dict) else accept
    if below and rest is accept:
        checks.append(_named(below))
    elif rest is not accept:
        every = {**dict.fromkeys(named, accept), **below}
        checks.append(lambda value: all(every.get(key, rest)(item) for key, item in value.items()))
    return checks


def _named(below: dict[str, Check]) -> Check:
    def check(value: dict[str, Any]) -> bool:
        if ABANDONED:
            checkpoint()
        for key, item in value.items():
            test = below.get(key)
            if test is not None and not test(item):
                return False
        return True

    return check


def _compile_combinations(schema: Schema) -> Check | None:
    checks: list[Check] = []
    for name in ("allOf", "anyOf", "oneOf"):
        branches = [compile_check(branch) for branch in schema.get(name) or ()]
        if branches:
            checks.append(_COMBINE[name](branches))
    if schema.get("not") is not None:
        excluded = compile_check(schema["not"])
        checks.append(lambda value: not excluded(value))
    return all_of(checks) if checks else None


class Enum:
    """Listed values, found at once however many there are.

    Numbers are compared after conversion to the listed one's type; null is never found.
    """

    __slots__ = ("_floats", "_integers", "_others", "_plain")

    def __init__(self, allowed: list[Any]) -> None:
        PATIENCE.spend(len(allowed) // 2)
        self._integers = frozenset(each for each in allowed if each.__class__ is int)
        self._floats = frozenset(each for each in allowed if each.__class__ is float)
        self._plain = frozenset((each.__class__, each) for each in allowed if each.__class__ in (str, bool))
        self._others = [each for each in allowed if each.__class__ in (list, dict)]

    def __contains__(self, value: Any) -> bool:
        kind = value.__class__
        if kind in (str, bool):
            return (kind, value) in self._plain
        if kind in (int, float):
            return bool(self._integers and int(value) in self._integers) or value in self._floats
        return any(each.__class__ is kind and each == value for each in self._others)


class TooMuchWork(Exception):
    """An object and its schema's alternatives multiply to more than one request may cost."""


class Work(threading.local):
    """What is left of the work that one validation may do on alternatives. All else is linear in the object."""

    LIMIT: ClassVar[int] = 1_000_000

    TEXT_LIMIT: ClassVar[int] = 1 << 20

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """For the next object."""
        self.left = self.LIMIT
        self.text_left = self.TEXT_LIMIT
        """How many characters of messages are still worth making: nobody is told more."""
        self.enums: dict[int, tuple[list[Any], Enum]] = {}
        """By the identity of their lists, which are kept with them: that of one which is gone may be another's."""

    def enum(self, allowed: list[Any]) -> Enum:
        found = self.enums.get(id(allowed))
        if found is None:
            found = self.enums[id(allowed)] = allowed, Enum(allowed)
        return found[1]

    def spend(self, value: Any, alternatives: int) -> None:
        """Pay for trying a value against so many schemas; long texts cost more."""
        PATIENCE.spend(alternatives)
        self.left -= alternatives if value.__class__ is not str else alternatives * (1 + len(value) // 256)
        if self.left < 0:
            raise TooMuchWork


WORK: Final = Work()
"""Validation never waits for anything, so all of it in a thread can share this. It is filled up before each object."""


def _all_of(branches: list[Check]) -> Check:
    return _paid(branches, lambda value: all(branch(value) for branch in branches))


def _any_of(branches: list[Check]) -> Check:
    return _paid(branches, lambda value: any(branch(value) for branch in branches))


def _one_of(branches: list[Check]) -> Check:
    return _paid(branches, lambda value: sum(branch(value) for branch in branches) == 1)


def _paid(branches: list[Check], check: Check) -> Check:
    count = len(branches)

    def spend_and_check(value: Any) -> bool:
        WORK.spend(value, count)
        return check(value)

    return spend_and_check


_COMBINE: Final = {"allOf": _all_of, "anyOf": _any_of, "oneOf": _one_of}
