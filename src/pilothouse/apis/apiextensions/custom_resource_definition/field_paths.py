"""Paths of fields in a schema, as ``fieldPath`` of rules and ``selectableFields`` write them: ``.spec.a['b.c']``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.machinery.field_errors import Path

_TOKEN: Final = re.compile(r"'(?:\\.|[^'\\]++)*+'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class FieldPathError(ValueError):
    """The text is no path of the schema."""


def find_field(text: str, node: Node | None, *, brackets: bool = True) -> tuple[Path | None, Node | None]:
    """The path and the schema it leads to. Raises ``FieldPathError``."""
    tokens = iter(_TOKEN.findall(text))
    path: Path | None = None
    for token in tokens:
        if token == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _quoted(tokens)
            path, node = _step(path, node, name)
            closing = next(tokens, None)
            if closing is None:
                raise FieldPathError("unexpected end of JSON path")
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":
            found = next(tokens, None)
            if found is None:
                raise FieldPathError("unexpected end of JSON path")
            path, node = _step(path, node, found)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return path, node


def _quoted(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), token[1:-1])


def _step(path: Path | None, node: Node | None, name: str) -> tuple[Path, Node | None]:
    if node is not None and node.properties:
        if name not in node.properties:
            raise FieldPathError("does not refer to a valid field")
        return Path(name) if path is None else path.child(name), node.properties[name]
    if node is None or (node.additional is None and not node.closes_additional):
        raise FieldPathError("does not refer to a valid field")
    return (path or Path()).key(name), node.additional
