"""One step of a field path, as the text that ``fieldsV1`` has for it.

``f:name`` is a field or map key, ``k:{"name":"web"}`` the list item with these key fields, ``v:"x"`` a member of a set,
``i:3`` a list index. A text in canonical form (key names sorted, JSON without blanks, ``<``, ``>`` and ``&`` escaped)
stands for exactly one step, so steps are compared as strings; only their order needs a closer look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

from pilothouse.machinery.go_json import with_whole_numbers
from pilothouse.machinery.go_quote import format_float, quote

Path = tuple[str, ...]

_SHORT = 200
"""Longer texts are not remembered: they come from clients, and would be kept."""

_ESCAPED = {
    "<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\N{LINE SEPARATOR}": "\\u2028",
    "\N{PARAGRAPH SEPARATOR}": "\\u2029",
}  # fmt: skip
_needs_escape = re.compile("[<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}]")
_INDEX = re.compile(r"[+-]?[0-9]+")


class PathError(ValueError):
    """A text that is no step of a path."""


def write_json(value: Any) -> str:
    """JSON as Go writes it into a path step."""
    text = orjson.dumps(with_whole_numbers(value) if value.__class__ is float else value).decode()
    if _needs_escape.search(text):
        text = _needs_escape.sub(lambda match: _ESCAPED[match[0]], text)
    return text


def key_step(fields: Iterable[tuple[str, Any]]) -> str:
    """The step to a list item by its key fields, which come sorted by name."""
    return "k:{" + ",".join(f'"{name}":{write_json(value)}' for name, value in fields) + "}"


def name_step(name: str, text: str) -> str:
    """The step to a list item by one key field that is a string: the usual case."""
    return _name_step(name, text) if len(text) < _SHORT else _name_step.__wrapped__(name, text)


@lru_cache(8192)
def _name_step(name: str, text: str) -> str:
    return f'k:{{"{name}":{write_json(text)}}}'


def value_step(value: Any) -> str:
    """The step to a member of a set."""
    return _text_step(value) if value.__class__ is str and len(value) < _SHORT else "v:" + write_json(value)


@lru_cache(4096)
def _text_step(text: str) -> str:
    return "v:" + write_json(text)


def read_step(text: str) -> str | None:
    """The canonical form of a step; None for a kind of step that this version does not know."""
    if text.startswith("f:"):
        return text
    return _read_other_step(text) if len(text) < _SHORT else _read_other_step.__wrapped__(text)


@lru_cache(4096)
def _read_other_step(text: str) -> str | None:
    if len(text) < 2:
        raise PathError("key must be 2 characters long:")
    if text[1] != ":":
        raise PathError(f"missing colon: {text}")
    if text[0] == "i":
        if not _INDEX.fullmatch(text[2:]):
            raise PathError(f"strconv.Atoi: parsing {quote(text[2:])}: invalid syntax")
        return f"i:{int(text[2:])}"
    if text[0] not in "kv":
        return None
    try:
        value = orjson.loads(text[2:])
    except orjson.JSONDecodeError as error:
        raise PathError(str(error)) from None
    if text[0] == "v":
        return value_step(value)
    if not isinstance(value, dict):
        raise PathError(f"expect {{ or n, but found {text[2:3]}")
    return "k:{" + ",".join(f"{write_json(name)}:{write_json(value[name])}" for name in sorted(value)) + "}"


def show_step(step: str) -> str:
    """The step as messages show it: ``.name``, ``[name="web"]``, ``[="x"]``, ``[3]``."""
    kind, rest = step[0], step[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        return "[" + ",".join(f"{name}={show_value(value)}" for name, value in orjson.loads(rest).items()) + "]"
    if kind == "v":
        return f"[={show_value(orjson.loads(rest))}]"
    return f"[{rest}]"


def show_path(path: Path) -> str:
    return "".join(map(show_step, path))


def show_value(value: Any) -> str:
    """A value inside a step, as messages show it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, list):
        return "[" + ",".join(map(show_value, value)) + "]"
    if isinstance(value, dict):
        return "".join(f"{key}={show_value(item)}" for key, item in value.items())
    return str(value)


def order(step: str) -> tuple[Any, ...]:
    """What steps are sorted by: fields by name, then keys, then values by type and value, then indexes."""
    if step.startswith("f:"):
        return 0, step
    return _other_order(step) if len(step) < _SHORT else _other_order.__wrapped__(step)


@lru_cache(4096)
def _other_order(step: str) -> tuple[Any, ...]:
    if step == ".":
        return (-1,)
    kind, rest = step[0], step[2:]
    if kind == "k":
        return 1, tuple((name, _value_order(value)) for name, value in orjson.loads(rest).items())
    if kind == "v":
        return 2, _value_order(orjson.loads(rest))
    return 3, int(rest)


def _value_order(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    if isinstance(value, list):
        return 3, tuple(map(_value_order, value))
    if isinstance(value, dict):
        return 4, tuple((name, _value_order(value[name])) for name in sorted(value))
    return (5,)
