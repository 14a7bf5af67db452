"""Faults of values as field errors, the way the original turns one into the other."""

from __future__ import annotations

import orjson

from pilothouse.apis.apiextensions.schema import values
from pilothouse.apis.apiextensions.schema.values import Fault, Result
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
    type_invalid,
)


def field_errors(path: Path | None, result: Result) -> list[FieldError]:
    """All faults of a result; ``path`` is where the validated value is."""
    return [_field_error(path, fault) for fault in result.errors.values()]


def _field_error(path: Path | None, fault: Fault) -> FieldError:
    if fault.kind == values.COMPOSITE:
        return invalid(path, "", fault.text)
    name = fault.name.removeprefix(".")
    where = path
    if name:
        where = Path(name) if path is None else path.child(name)
    shown = "" if fault.value is None else fault.value
    match fault.kind:
        case values.REQUIRED:
            return required(where)
        case values.ENUM:
            allowed = (each if isinstance(each, str) else orjson.dumps(each).decode() for each in fault.limit)
            return not_supported(where, fault.value, allowed, plain=True)
        case values.TOO_LONG:
            return too_long(where, "", fault.limit)
        case values.TOO_MANY:
            return too_many(where, fault.value, fault.limit)
        case values.TYPE:
            return type_invalid(where, shown, fault.text)
    return invalid(where, shown, fault.text)
