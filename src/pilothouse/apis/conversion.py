"""Conversion between the version a client speaks and the hub version, for kinds whose versions differ in shape.

Most kinds have one version, or versions of the same shape: nothing is converted then. A group with versions of
different shapes has a module ``conversion`` with a dictionary ``CONVERTERS`` from (version, resource) to (to hub, from
hub). Versions that are served no more are converted by ``apis.legacy``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from pilothouse.apis.resources import Resource
from pilothouse.machinery.objects import Object

Convert = Callable[[Object], Object]


def converters_for(resource: Resource) -> tuple[Convert | None, Convert | None]:
    """(to the hub, from the hub); None where there is nothing to do."""
    if resource.hub == resource.group_version:
        return None, None
    if resource.legacy:
        from pilothouse.apis.legacy.older import converters_of

        return converters_of(resource)
    name = f"pilothouse.apis.{resource.package}.conversion"
    if find_spec(f"pilothouse.apis.{resource.package}") is None or find_spec(name) is None:
        return None, None
    converters: dict[tuple[str, str], tuple[Convert, Convert]] = import_module(name).CONVERTERS
    return converters.get((resource.version, resource.name), (None, None))


def unowned_fields(resource: Resource) -> tuple[str, ...] | None:
    """Dotted paths that nobody owns through this version; None where those count that an endpoint never keeps."""
    if not resource.legacy:
        return None
    from pilothouse.apis.legacy.older import older_of

    return older_of(resource).unowned


def own_defaults(resource: Resource) -> Callable[[Object], None] | None:
    """What fills an object in before it is brought to the hub version; None where that version's defaults are all."""
    if not resource.legacy:
        return None
    from pilothouse.apis.legacy.older import completer_of

    return completer_of(resource)
