"""`fieldPath` of a rule: a path like `.spec['a.b']` through the fields of a schema, as error messages print it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pilothouse.machinery.field_errors import Path

_TOKEN = re.compile(r"'(?:[^'\\]++|\\.)*+'|[.\[\]]|[^.\[\]']+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class _PathError(Exception):
    """The path leads nowhere."""


def normalize_field_path(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return the path below a schema as error messages write it, or None if it leads nowhere."""
    if len(text) > 10_000:
        return None
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text:
        return None
    path: Path | None = None
    at = 0
    try:
        while at < len(tokens):
            name, at = _read_step(tokens, at)
            path, schema = _step(path, schema, name)
    except _PathError:
        return None
    return str(path) if path is not None else ""


def _read_step(tokens: list[str], at: int) -> tuple[str, int]:
    if tokens[at] == "." and at + 1 < len(tokens):
        return tokens[at + 1], at + 2
    if tokens[at] != "[" or at + 2 >= len(tokens) or tokens[at + 2] != "]":
        raise _PathError
    quoted = tokens[at + 1]
    if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
        raise _PathError
    body = quoted[1:-1]
    if any(letter not in _ESCAPES for letter in _ESCAPE.findall(body)):
        raise _PathError
    return _ESCAPE.sub(lambda found: _ESCAPES[found.group(1)], body), at + 3


def _step(path: Path | None, schema: Mapping[str, Any], name: str) -> tuple[Path, Mapping[str, Any]]:
    properties = schema.get("properties")
    if properties is not None:
        if name not in properties:
            raise _PathError
        return (path.child(name) if path is not None else Path(name)), properties[name]
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        raise _PathError
    return (path or Path()).key(name), values
