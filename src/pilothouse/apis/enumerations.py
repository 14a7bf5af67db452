"""Which values a string field of a built-in type may have, as its OpenAPI schema publishes them.

Read from the catalogue when the first schema is made. The server itself does not refuse other values by this list: that
is for validation, which often knows more of them or fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from pilothouse.apis import catalogue

_NONE: Final[Mapping[str, list[str]]] = MappingProxyType({})


def values_of(type_name: str) -> Mapping[str, list[str]]:
    """The values of each enumerated field of a catalogued type, in order; of its items where it is a list or map."""
    return _all().get(type_name, _NONE)


@cache
def _all() -> dict[str, dict[str, list[str]]]:
    text = catalogue.read("enums.txt")
    found: dict[str, dict[str, list[str]]] = {}
    for line in text.splitlines():
        owner, field, values = line.split(" ", 2)
        found.setdefault(owner, {})[field] = values.split("|")
    return found
