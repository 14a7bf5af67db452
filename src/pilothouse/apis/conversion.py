"""Conversion between the version a client speaks and the hub version, for kinds whose versions differ in shape.

Most kinds have one version, or versions of the same shape: nothing is converted then. A group with versions of
different shapes has a module ``conversion`` with a dictionary ``CONVERTERS`` from (version, resource) to (to hub, from
hub).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pilothouse.apis.resources import Resource

Object = dict[str, Any]
Convert = Callable[[Object], Object]


def converters_for(resource: Resource) -> tuple[Convert | None, Convert | None]:
    """(to the hub, from the hub); None where there is nothing to do."""
    if resource.hub == resource.group_version:
        return None, None
    name = f"pilothouse.apis.{resource.package}.conversion"
    if find_spec(f"pilothouse.apis.{resource.package}") is None or find_spec(name) is None:
        return None, None
    converters: dict[tuple[str, str], tuple[Convert, Convert]] = import_module(name).CONVERTERS
    return converters.get((resource.version, resource.name), (None, None))
