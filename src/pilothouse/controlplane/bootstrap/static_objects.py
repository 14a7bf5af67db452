"""Objects that depend on no flag: flow control and priority classes.

The file comes from ``tools/make_bootstrap.py`` and holds them as they are created, one a line.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import orjson

from pilothouse.machinery.objects import Object


@cache
def _file() -> bytes:
    return files(__package__).joinpath("static_objects.json").read_bytes()


def static_objects(resource: str) -> list[Object]:
    """Fresh objects of a resource, in the order they are to be made; the caller may change them."""
    objects: list[Object] = orjson.loads(_file())[resource]
    return objects
