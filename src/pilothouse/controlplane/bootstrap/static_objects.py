"""Objects that depend on no flag: flow control and priority classes.

The file comes from ``tools/make_bootstrap.py`` and holds them as they are created, one a line.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import orjson

from pilothouse.machinery.objects import Object


@cache
def _file() -> bytes:
    return Path(__file__).with_suffix(".json").read_bytes()


def static_objects(resource: str) -> list[Object]:
    """Fresh objects of a resource, in the order they are to be made; the caller may change them."""
    objects: list[Object] = orjson.loads(_file())[resource]
    return objects
