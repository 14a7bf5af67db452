"""Why a value is invalid: kube-apiserver's validator, with its words, its order and its choice among alternatives.

It runs only for objects that ``checks`` has refused. Every validator counts what it found fitting; of alternatives that
all fail, the one with the most fitting parts lends its errors. On updates a value that did not change is forgiven
(``CorrelatedObject`` knows the old one): its errors were there before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pilothouse.apis.apiextensions.schema import formats
from pilothouse.apis.apiextensions.schema.checks import WORK, as_go_number, format_of, is_whole, types_of
from pilothouse.apis.apiextensions.schema.nodes import Schema
from pilothouse.machinery.go_quote import format_float, quote, show
from pilothouse.machinery.patterns import PatternError, compile_pattern
from pilothouse.machinery.ratcheting import CorrelatedObject
from pilothouse.machinery.workers import PATIENCE

TYPE: Final = "type"
REQUIRED: Final = "required"
ENUM: Final = "enum"
TOO_LONG: Final = "too long"
TOO_MANY: Final = "too many"
OTHER: Final = "other"
COMPOSITE: Final = "composite"


_ERROR_COST: Final = 10
_LETTERS: Final = 32
"""So many letters of a message cost one unit."""
_BRANCH_COST: Final = 8
"""Of saying why a value fits none of some schemas, for each."""


class SchemaError:
    """One error: its kind, the path it names, the value it shows, and its text."""

    __slots__ = ("kind", "limit", "name", "text", "value")

    def __init__(self, kind: str, name: str, value: Any, text: str, limit: Any = None) -> None:
        self.kind = kind
        self.name = name
        self.value = value
        self.text = text
        self.limit = limit
        WORK.text_left -= len(text)
        PATIENCE.spend(_ERROR_COST + len(text) // _LETTERS)


class Result:
    """Errors, each text once, and how much was found fitting."""

    __slots__ = ("count", "errors")

    def __init__(self, *errs: SchemaError) -> None:
        self.errors: dict[str, SchemaError] = {error.text: error for error in errs}
        self.count = 0

    def add(self, error: SchemaError | None) -> None:
        if error is not None:
            self.errors.setdefault(error.text, error)

    def merge(self, other: Result) -> None:
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.count += other.count


def explain(schema: Schema, value: Any, path: str = "", correlation: CorrelatedObject | None = None) -> Result:
    """All errors of a value at a path."""
    result = _validate(schema, value, path, correlation)
    if result.errors and correlation is not None and correlation.is_unchanged():
        result.errors = {}
    return result


def _validate(schema: Schema, value: Any, path: str, correlation: CorrelatedObject | None) -> Result:
    result = Result()
    kinds, format = types_of(schema), format_of(schema)
    value = as_go_number(value)
    if value is None:
        result.count += 1
        if kinds and not schema.get("nullable"):
            result.count -= 1
            result.add(_wrong_type(path, ",".join(kinds), "null"))
        result.add(_enum_error(schema, value, path))
        return result
    if kinds or format:
        result.count += 1
        error = _type_error(kinds, format, value, path)
        if error is None:
            result.count += 1
        else:
            result.add(error)
    result.merge(_explain_combinations(schema, value, path, correlation))
    result.count += 1
    if value.__class__ is str:
        result.count += 1
        result.add(_string_error(schema, value, path))
        if format and formats.is_known(format):
            result.count += 1
            if not formats.checker(format)(value):
                result.add(_wrong_type(path, format, value))
    elif value.__class__ in (int, float):
        result.count += 1
        result.merge(explain_number(schema, value, path))
    elif value.__class__ is list:
        result.count += 1
        result.merge(_explain_list(schema, value, path, correlation))
    result.count += 1
    result.add(_enum_error(schema, value, path))
    if value.__class__ is dict:
        result.count += 1
        result.merge(_explain_map(schema, value, path, correlation))
    result.count += 1
    return result


def _wrong_type(path: str, wanted: str, value: Any) -> SchemaError:
    text = f"{path} in body must be of type {wanted}"
    if value.__class__ is str:
        text += f": {quote(value)}"
    return SchemaError(TYPE, path, value, text)


_NAMES: Final = {str: "string", bool: "boolean", dict: "object", list: "array", int: "integer", float: "number"}
_FORMATS: Final = {int: "int64", float: "float64"}


def _type_error(kinds: tuple[str, ...], format: str, value: Any, path: str) -> SchemaError | None:
    name = _NAMES[value.__class__]
    numeric = "integer" in kinds or "number" in kinds
    fits = (
        name in kinds
        or (name == "number" and "integer" in kinds and is_whole(value))
        or (name == "integer" and "number" in kinds)
    )
    own = _FORMATS.get(value.__class__, "")
    if value.__class__ not in (str, list) and format and not fits and own != format:
        return _wrong_type(path, format, own)
    if format and not numeric and value.__class__ in (str, list):
        return None
    return None if fits else _wrong_type(path, ",".join(kinds), name)


def _enum_error(schema: Schema, value: Any, path: str) -> SchemaError | None:
    allowed = schema.get("enum")
    if not allowed or (value is not None and value in WORK.enum(allowed)):
        return None
    PATIENCE.spend(len(allowed))  # all of them are shown
    return SchemaError(ENUM, path, value, f"{path} in body should be one of {show(allowed)}", allowed)


def _string_error(schema: Schema, value: str, path: str) -> SchemaError | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        return SchemaError(TOO_LONG, path, value, f"{path} in body should be at most {longest} chars long", longest)
    if shortest is not None and len(value) < shortest:
        return SchemaError(OTHER, path, value, f"{path} in body should be at least {shortest} chars long")
    if pattern:
        shown = pattern
        try:
            if compile_pattern(pattern).search(value) is not None:
                return None
        except PatternError as error:
            shown = f"{pattern}, but pattern is invalid: {error}"
        return SchemaError(OTHER, path, value, f"{path} in body should match '{shown}'")
    return None


def explain_number(schema: Schema, value: Any, path: str) -> Result:
    """Errors of a number: its format's range, multiples, limits."""
    result = Result()
    kinds = types_of(schema)
    kind = kinds[0] if len(kinds) == 1 and kinds[0] in ("integer", "number") else ""
    format = format_of(schema) if kind else ""
    result.add(_range_error(value, kind, format, "Checked", path))
    factor = schema.get("multipleOf")
    if factor is not None:
        result.add(misfit := _range_error(factor, kind, format, "MultipleOf", path))
        result.add(_multiple_error(value, factor, path, whole=misfit is None))
    for name, what, upper in (("minimum", "Minimum boundary", False), ("maximum", "Maximum boundary", True)):
        limit = schema.get(name)
        if limit is not None:
            exclusive = bool(schema.get(f"exclusive{name.capitalize()}"))
            result.add(misfit := _range_error(limit, kind, format, what, path))
            result.add(_limit_error(value, limit, exclusive, path, upper=upper, whole=misfit is None))
    result.count += 1
    return result


def _range_error(value: Any, kind: str, format: str, what: str, path: str) -> SchemaError | None:
    if kind == "integer":
        bits = 32 if format == "int32" else 64
        whole = value == int(value)
        if whole and -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return None
    elif format != "float" or abs(value) <= 3.4028235677973366e38:
        return None
    shown = f"with format {format}" if format else "(default format)"
    return SchemaError(COMPOSITE, "", "", f"{what} value must be of type {kind} {shown} in {path}")


def _multiple_error(value: Any, factor: Any, path: str, *, whole: bool) -> SchemaError | None:
    """``whole`` is whether the factor is one of the number's type: of whole numbers the fraction of one is left out."""
    whole = whole and value.__class__ is int
    if whole:
        factor = int(factor)
    else:
        value = float(value)
    if factor <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {show(factor)}"
        return SchemaError(OTHER, path, factor, text)
    if whole:
        fits = value % factor == 0
    else:
        fits = is_whole(1 / factor * value if factor < 1 else value / factor)
    shown = format_float(factor) if factor.__class__ is float else str(factor)
    return None if fits else SchemaError(OTHER, path, value, f"{path} in body should be a multiple of {shown}")


def _limit_error(value: Any, limit: Any, exclusive: bool, path: str, *, upper: bool, whole: bool) -> SchemaError | None:
    if not whole:
        value = float(value)
    elif value.__class__ is int:
        limit = int(limit)
    beyond = value > limit if upper else value < limit
    if not beyond and not (exclusive and value == limit):
        return None
    words = ("less" if upper else "greater") + " than" + ("" if exclusive else " or equal to")
    shown = format_float(limit) if limit.__class__ is float else str(limit)
    return SchemaError(OTHER, path, value, f"{path} in body should be {words} {shown}")


def _explain_list(schema: Schema, value: list[Any], path: str, correlation: CorrelatedObject | None) -> Result:
    result = Result()
    items = schema.get("items")
    if isinstance(items, dict):
        for position, item in enumerate(value):
            if WORK.text_left < 0:
                break
            below = correlation.index(position) if correlation is not None else None
            result.merge(explain(items, item, f"{path}[{position}]", below))
    size, least, most = len(value), schema.get("minItems"), schema.get("maxItems")
    if least is not None and size < least:
        result.add(SchemaError(OTHER, path, size, f"{path} in body should have at least {least} items"))
    if most is not None and size > most:
        result.add(SchemaError(TOO_MANY, path, size, f"{path} in body should have at most {most} items", most))
    result.count += 1
    return result


def _explain_map(schema: Schema, value: dict[str, Any], path: str, correlation: CorrelatedObject | None) -> Result:
    result = Result()
    size, least, most = len(value), schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and size < least:
        result.add(SchemaError(OTHER, path, size, f"{path} in body should have at least {least} properties"))
    if most is not None and size > most:
        result.add(SchemaError(TOO_MANY, path, size, f"{path} in body should have at most {most} properties", most))
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if additional is False:
        for key in value:
            if key not in properties and WORK.text_left >= 0:
                result.add(SchemaError(OTHER, path, key, f"{path}.{key} in body is a forbidden property"))
    elif isinstance(additional, dict):
        for key, item in value.items():
            if WORK.text_left < 0:
                break
            if key not in properties:
                result.merge(explain(additional, item, f"{path}.{key}", _below(correlation, key, path)))
    for key in sorted(properties):
        if key in value:
            where = f"{path}.{key}" if path else key
            result.merge(explain(properties[key], value[key], where, _below(correlation, key, path)))
    for key in schema.get("required") or ():
        if key not in value:
            result.add(SchemaError(REQUIRED, f"{path}.{key}", None, f"{path}.{key} in body is required"))
    return result


def _below(correlation: CorrelatedObject | None, key: str, path: str) -> CorrelatedObject | None:
    """The old value of a field. Type and version of the whole object are the same by construction."""
    if correlation is None or (not path and key in ("kind", "apiVersion")):
        return None
    return correlation.key(key)


def _explain_combinations(schema: Schema, value: Any, path: str, correlation: CorrelatedObject | None) -> Result:
    result = Result()
    for name, explain_them in (("anyOf", _explain_any), ("oneOf", _explain_one), ("allOf", _explain_all)):
        branches = schema.get(name)
        if branches:
            WORK.spend(value, len(branches))
            PATIENCE.spend(len(branches) * _BRANCH_COST)
            explain_them(result, [_validate(branch, value, path, correlation) for branch in branches], path)
    excluded = schema.get("not")
    if excluded is not None and not _validate(excluded, value, path, correlation).errors:
        result.add(SchemaError(COMPOSITE, "", "", f"{quote(path)} must not validate the schema (not)"))
    result.count += 1
    return result


def _best(failures: Iterable[Result]) -> Result | None:
    best: Result | None = None
    for failure in failures:
        if best is None or failure.count > best.count:
            best = failure
    return best


def _explain_any(result: Result, branches: list[Result], path: str) -> None:
    fitting = next((branch for branch in branches if not branch.errors), None)
    if fitting is None:
        result.add(SchemaError(COMPOSITE, "", "", f"{quote(path)} must validate at least one schema (anyOf)"))
        fitting = _best(branches)
    if fitting is not None:
        result.merge(fitting)


def _explain_one(result: Result, branches: list[Result], path: str) -> None:
    fitting = [branch for branch in branches if not branch.errors]
    if len(fitting) == 1:
        result.merge(fitting[0])
        return
    found = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    result.add(SchemaError(COMPOSITE, "", "", f"{quote(path)} must validate one and only one schema (oneOf). {found}"))
    best = None if fitting else _best(branches)
    if best is not None:
        result.merge(best)


def _explain_all(result: Result, branches: list[Result], path: str) -> None:
    fitting = 0
    for branch in branches:
        fitting += not branch.errors
        result.merge(branch)
    if fitting != len(branches):
        more = "" if fitting else ". None validated"
        result.add(SchemaError(COMPOSITE, "", "", f"{quote(path)} must validate all the schemas (allOf){more}"))
