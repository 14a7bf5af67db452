"""Reading a JSON text in which fields stand twice, as Go reads it into a struct.

The second occurrence is decoded over the first: structs and maps are merged, all else is replaced. What a strict
decoder has to say, about fields that stand twice and about unknown ones, comes in the order of the text. It says
nothing about what is inside unknown fields and raw values.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery import large_json
from pilothouse.machinery.disposal import dispose
from pilothouse.machinery.go_json import sound
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.schema.types import ListOf, MapOf, Special, Struct, Type

MOST_ERRORS: Final = 100
"""How many errors a strict decoder remembers."""


class Pairs(list[tuple[str, Any]]):
    """An object's pairs as written."""


def read_repeating(kind: Struct, data: bytes) -> tuple[Any, list[str]] | None:
    """The value, and the errors; None for a text that is too deep for this."""
    try:
        reading = _Reading()
        pairs = [large_json.loads_with(sound(data), Pairs)]
        value = reading.read(kind, pairs[0], "")
    except RecursionError:
        return None
    dispose(pairs)
    return value, list(reading.errs)


class _Reading:
    def __init__(self) -> None:
        self.errs: dict[str, None] = {}

    def _note(self, error: str, path: str) -> None:
        if len(self.errs) < MOST_ERRORS:
            self.errs[f"{error} field {quote(path)}"] = None

    def read(self, kind: Type | None, value: Any, path: str) -> Any:
        if isinstance(value, Pairs):
            if isinstance(kind, Struct):
                return self._struct(kind, value, path)
            if isinstance(kind, MapOf):
                return self._map(kind, value, path)
            return {key: self.read(None, item, "") for key, item in value}
        if isinstance(value, list):
            item_kind = kind.item if isinstance(kind, ListOf) else None
            return [self.read(item_kind, item, f"{path}[{position}]") for position, item in enumerate(value)]
        return value

    def _struct(self, kind: Struct, pairs: Pairs, path: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in pairs:
            where = f"{path}.{key}" if path else key
            field = kind.fields.get(key)
            if field is None:
                self._note("unknown", where)
                out[key] = self.read(None, item, "")
                continue
            if key in out:
                self._note("duplicate", where)
            value = self.read(field.type, item, where)
            out[key] = _merge(field.type, out[key], value) if key in out else value
        return out

    def _map(self, kind: MapOf, pairs: Pairs, path: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in pairs:
            where = f"{path}.{key}" if path else key
            if key in out:
                self._note("duplicate", where)
            out[key] = self.read(kind.value, item, where)
        return out


def _merge(kind: Type, before: Any, after: Any) -> Any:
    """What a second value makes of a first."""
    if isinstance(before, dict) and isinstance(after, dict):
        if isinstance(kind, MapOf):
            return {**before, **after}
        if isinstance(kind, Struct):
            both = [key for key in before if key in after and key in kind.fields]
            return {**before, **after, **{key: _merge(kind.fields[key].type, before[key], after[key]) for key in both}}
    if after is None and not isinstance(kind, ListOf | MapOf | Special):
        return before
    return after
