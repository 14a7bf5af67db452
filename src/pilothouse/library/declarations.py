"""What a server serves, as its author declares it: groups of kinds, each in one or more versions.

A declaration is data and functions, complete when it is made, and knows nothing of the server that serves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilothouse.apis.strategy import Context
from pilothouse.library.computed import Computed
from pilothouse.library.subresources import Subresource
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

Convert = Callable[[Object], Object]


class Strategy:
    """The rules of a kind beside its schema. Each does nothing unless it is overridden.

    Objects are in the storage version, whichever version the client speaks, and fit its schema. Hooks run on the event
    loop: they must not block.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a kind. Conversions may use up the object they are given; metadata is none of their business."""

    name: str
    schema: Mapping[str, Any] | type
    """A structural schema of the whole object, or a dataclass or pydantic model to make it of."""
    default: Callable[[Object], None] | None = None
    """Fills in what was left out and the schema has no default for."""
    to_storage: Convert | None = None
    """Makes an object of the storage version; without it the two differ in nothing but their names."""
    from_storage: Convert | None = None
    served: bool = True
    deprecation: str = ""
    """The warning that every request to this version gets."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of tables after the name: a JSONPath, or a function of the object as the client's version has it."""

    name: str
    value: str | Callable[[Object], Any]
    type: str = "string"
    """``string``, ``integer``, ``number``, ``boolean``; or ``date``, which shows how long ago that was."""
    priority: int = 0
    """Columns of priority 1 show with ``-o wide``."""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource: where the numbers stand in the object."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind and its resource."""

    name: str
    versions: Sequence[Version]
    """The first is stored, unless ``storage_version`` says otherwise."""
    storage_version: str = ""
    plural: str = ""
    singular: str = ""
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    namespaced: bool = True
    strategy: Strategy = field(default_factory=Strategy)
    columns: Sequence[Column] = ()
    """Without any, tables show name and age."""
    status: bool = False
    """Whether the status is written through a subresource only."""
    scale: Scale | None = None
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    """Beside status and scale, by name."""
    computed: Computed | None = None
    """Where objects come from that are not stored; such a kind takes no writes."""
    selectable_fields: Sequence[str] = ()
    """Fields that selectors may use, as JSONPaths: ``.spec.color``."""


@dataclass(frozen=True, slots=True)
class Group:
    """An API group."""

    name: str
    kinds: Sequence[Kind]
