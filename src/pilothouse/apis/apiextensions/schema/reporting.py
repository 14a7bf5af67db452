"""Errors of values as field errors, the way kube-apiserver turns one into the other."""

from __future__ import annotations

import orjson

from pilothouse.apis.apiextensions.schema import values
from pilothouse.apis.apiextensions.schema.values import Result, SchemaError
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
    """All errors of a result; ``path`` is where the validated value is."""
    return [_field_error(path, error) for error in result.errors.values()]


def _field_error(path: Path | None, error: SchemaError) -> FieldError:
    if error.kind == values.COMPOSITE:
        return invalid(path, "", error.text)
    name = error.name.removeprefix(".")
    where = path
    if name:
        where = Path(name) if path is None else path.child(name)
    shown = "" if error.value is None else error.value
    match error.kind:
        case values.REQUIRED:
            return required(where)
        case values.ENUM:
            allowed = (each if isinstance(each, str) else orjson.dumps(each).decode() for each in error.limit)
            return not_supported(where, error.value, allowed, plain=True)
        case values.TOO_LONG:
            return too_long(where, "", error.limit)
        case values.TOO_MANY:
            return too_many(where, error.value, error.limit)
        case values.TYPE:
            return type_invalid(where, shown, error.text)
    return invalid(where, shown, error.text)
