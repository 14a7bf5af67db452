"""The mechanism of legacy versions: how each is read, filled in, judged and shown.

    body → decoded in the legacy version → its own defaults → converted to the hub version → defaults, rules, storage
    stored object → converted from the hub version → shown

A module ``pilothouse.apis.legacy.<package>`` has a dictionary ``OLDER`` from (version, resource) to what is special
there. A version that is not in it differs from the hub at most in fields that it lacks or always writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from pilothouse.apis import resources, types
from pilothouse.apis.legacy.shapes import same_shape, shaper
from pilothouse.apis.resources import Resource, hub_row
from pilothouse.apis.strategy import Strategy
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import without_notes

Convert = Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Older:
    """What is special about a legacy version of a kind."""

    to_hub: Convert | None = None
    """Changes names and forms; what the hub's type does not have is dropped afterwards. May change what it is given."""
    from_hub: Convert | None = None
    """The way back. The object given is not to be changed."""
    default: Callable[[Object], None] | None = None
    """Fills in what the version fills in, in its own form."""
    strategy: type[Strategy] | None = None
    """Rules of its own for what is written through it."""
    check: Callable[[Object], list[FieldError]] | None = None
    """Errors that only its own form can have; found before anything else is judged."""
    unowned: tuple[str, ...] | None = None
    """Fields that nobody comes to own through it; None for those that an endpoint never keeps, as today's
    versions have it.
    """


def load() -> None:
    """Let tables and catalogue know the legacy versions. Costs nothing when done already."""
    types.add_legacy()
    resources.add_legacy()


def older_of(resource: Resource) -> Older:
    """What is special about a legacy row."""
    return _modules(resource.package).get((resource.version, resource.name), Older())


@cache
def _modules(package: str) -> dict[tuple[str, str], Older]:
    name = f"pilothouse.apis.legacy.{package}"
    if find_spec(name) is None:
        return {}
    found: dict[tuple[str, str], Older] = import_module(name).OLDER
    return found


def completer_of(resource: Resource) -> Callable[[Object], None] | None:
    """What fills an object in, and judges its form, in the version of a legacy row."""
    older = older_of(resource)
    if older.check is None:
        return older.default

    def complete(obj: Object) -> None:
        if older.default is not None:
            older.default(obj)
        errs = older.check(obj) if older.check is not None else []
        if errs:
            raise errors.invalid(resource.group_kind, obj["metadata"].get("name", ""), errs)

    return complete


@cache
def converters_of(resource: Resource) -> tuple[Convert | None, Convert | None]:
    """(to the hub, from the hub) of a legacy row; None where both are written alike."""
    hub = hub_row(resource)
    own, kept = types.struct(resource.type_name), types.struct(hub.type_name)
    older = older_of(resource)
    if older.to_hub is None and older.from_hub is None and same_shape(own, kept):
        return None, None
    return _then(older.to_hub, shaper(kept)), _then(older.from_hub, shaper(own))


def _then(first: Convert | None, second: Convert) -> Convert:
    return lambda obj: second(without_notes(obj) if first is None else first(without_notes(obj)))
