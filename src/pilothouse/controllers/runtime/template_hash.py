"""Short names for pod templates: what tells the revisions of a workload apart.

Equal templates have equal names in all processes. The names are not those that another controller manager would give;
it does not matter, because revisions are recognized by their templates.
"""

from __future__ import annotations

import hashlib

import orjson

from pilothouse.machinery.objects import Object

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME = 2166136261, 16777619
_LONG = 16 * 1024
"""Byte by byte, a template of a megabyte would take a tenth of a second."""


def template_hash(template: Object, collisions: int | None = None) -> str:
    """The name of a template; another one for each collision that was met."""
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if len(data) > _LONG:
        data = hashlib.blake2b(data).digest()
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return encode(_fnv(data))


def encode(number: int) -> str:
    """A number in letters that make no words."""
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def _fnv(data: bytes) -> int:
    number = _OFFSET
    for byte in data:
        number = ((number ^ byte) * _PRIME) & 0xFFFFFFFF
    return number
