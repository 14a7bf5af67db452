"""What code adds to a definition, which otherwise is data: rules, conversions, columns and endpoints of its own.

Definitions that clients create have none of it. A server that is written with ``pilothouse.library`` declares its kinds
as definitions with additions, so that they are served by the very same code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pilothouse.apis.resources import Resource
from pilothouse.apis.strategy import Column, Context
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.scope import Endpoint
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.registry.store.store import Store

Conversion = Callable[[Object, str, str], Object]
"""An object, the version it is in and the wanted one → the object in that. The given one may be used up."""
StoreAt = Callable[[], Store]
"""The store of the kind, as the served version has its objects."""


class KindHooks:
    """Rules of one version beside those of its schema. Each does nothing unless it is overridden.

    Objects that reach ``validate`` and its like fit the schema.
    """

    def default(self, obj: Object) -> None:
        """Fill in what was left out and the schema has no default for."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Drop or set what a creator may not."""

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        """Put back what an updater may not change."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        """Errors of a new object."""
        return []

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        """Errors of a changed object."""
        return []

    def validate_status_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        """Errors of a write through the status."""
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        """What to warn the creator of."""
        return []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        """What to warn the updater of."""
        return []


class OwnEndpoint(Protocol):
    """An endpoint that is not made of the definition's store: a subresource, or the resource itself."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """What it takes, as discovery shows it."""
        ...

    def kind(self, resource: Resource) -> GroupVersionKind:
        """What it takes and gives."""
        ...

    def make(self, resource: Resource, subresource: str, store: StoreAt, admission: Admission | None) -> Endpoint:
        """The endpoint at one version. There is no store behind a resource that has none."""
        ...


NO_HOOKS = KindHooks()


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """All that is added to one definition."""

    convert: Conversion | None = None
    """Between versions; without it, conversion changes ``apiVersion`` alone."""
    hooks: Mapping[str, KindHooks] = field(default_factory=dict)
    """By version."""
    columns: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)
    """By version, for those that do not show what their ``additionalPrinterColumns`` say."""
    endpoints: Mapping[str, OwnEndpoint] = field(default_factory=dict)
    """By the name of the subresource; the empty name stands for the resource itself, which then has no store."""


NO_ADDITIONS = Additions()
