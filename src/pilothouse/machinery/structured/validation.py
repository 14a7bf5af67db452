"""Does a value fit its shape? Errors carry the words of kube-apiserver, paths first.

Of a value with very many of them, those are told that fit into a megabyte.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.go_quote import quote, show
from pilothouse.machinery.structured.descriptions import StepError, step_of
from pilothouse.machinery.structured.paths import show_step, show_value
from pilothouse.machinery.structured.shapes import BOOLEAN, NUMERIC, STRING, ListShape, MapShape, Shape

_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1
"""Of whole numbers; Go reads what is beyond them as floats."""


class SchemaMismatch(ValueError):
    """A value that does not fit. ``errors`` are pairs of path and message."""

    def __init__(self, errors: list[tuple[str, str]]) -> None:
        self.errors = errors
        lines = [f"{path}: {message}" if path else message for path, message in errors]
        super().__init__(lines[0] if len(lines) == 1 else "\n".join(["errors:", *(f"  {line}" for line in lines)]))


def validate(shape: Shape, value: Any, *, allow_duplicates: bool = False) -> None:
    """Raise ``SchemaMismatch`` if the value does not fit. Duplicates are list items under one key."""
    errors = _Errors()
    _validate(shape, value, allow_duplicates, errors)
    if errors:
        raise SchemaMismatch(errors)


_TEXT_LIMIT: Final = 1 << 20


class _Errors(list[tuple[str, str]]):
    """Pairs of path and message, until there is as much text as anybody is told."""

    left = _TEXT_LIMIT

    def add(self, path: str, message: str) -> None:
        self.append((path, message))
        self.left -= len(path) + len(message)


_CLASSES: Final = {STRING: str, NUMERIC: int, BOOLEAN: bool}


def _validate(shape: Shape, value: Any, allow: bool, errors: _Errors) -> None:
    """Add the errors of a value; whoever called puts the way to the value in front of them."""
    if value is None:
        return
    if value.__class__ is dict and shape.map is not None:
        _validate_map(shape.map, value, allow, errors)
    elif value.__class__ is list and shape.items is not None:
        _validate_list(shape.items, value, allow, errors)
    elif shape.scalar and (value.__class__ not in (dict, list) or shape.map is None):
        message = _scalar_error(shape.scalar, value)
        if message:
            errors.add("", message)
    else:
        wanted = "map" if shape.map is not None else "list"
        errors.add("", f"expected {wanted}, got &{{{show(value)}}}")


def _validate_map(shape: MapShape, value: dict[str, Any], allow: bool, errors: _Errors) -> None:
    named, element = shape.fields, shape.element
    for key, item in value.items():
        inner = named.get(key, element)
        if inner is None:
            errors.add(f".{key}", "field not declared in schema")
            return
        if item.__class__ is _CLASSES.get(inner.scalar):
            continue
        before = len(errors)
        _validate(inner, item, allow, errors)
        if len(errors) > before:
            _prefix(errors, before, f".{key}")
        if errors.left < 0:
            return


def _validate_list(items: ListShape, value: list[Any], allow: bool, errors: _Errors) -> None:
    seen: set[str] = set()
    inner = items.item
    for position, item in enumerate(value):
        step = f"i:{position}"
        if not items.atomic:
            try:
                step = step_of(items, item)
            except StepError as error:
                errors.add("", f"element {position}: {error}")
                return
            if step in seen and not allow:
                errors.add("", f"duplicate entries for key {show_step(step)}")
            seen.add(step)
        before = len(errors)
        _validate(inner, item, allow, errors)
        if len(errors) > before:
            _prefix(errors, before, show_step(step))
        if errors.left < 0:
            return


def _prefix(errors: _Errors, start: int, step: str) -> None:
    errors[start:] = [(step + path, message) for path, message in errors[start:]]
    errors.left -= len(step) * (len(errors) - start)


def _scalar_error(scalar: str, value: Any) -> str:
    kind = value.__class__
    if scalar == NUMERIC:
        return "" if kind in (int, float) else f"expected numeric (int or float), got {_go_type(value)}"
    if scalar == STRING:
        return "" if kind is str else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if scalar == BOOLEAN:
        return "" if kind is bool else f"expected boolean, got &{{{show(value)}}}"
    return "" if kind not in (dict, list) else f"expected any scalar, got &{{{show(value)}}}"


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {str: "string", bool: "bool", int: "int64", float: "float64", bytes: "[]uint8"}[value.__class__]


def _go_syntax(value: Any) -> str:
    """A decoded JSON value as ``%#v`` shows it."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        inside = ", ".join(f"{quote(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inside}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    if value.__class__ is bytes:
        return "[]uint8{" + ", ".join(f"{byte:#x}" for byte in value) + "}"
    if value.__class__ is int and not _SMALLEST <= value <= _LARGEST:
        value = float(value)
    return show_value(value)
