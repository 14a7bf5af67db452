"""What is special about one resource: the hooks that ``registry/rest`` calls, and when.

A strategy says *what*; the driver says *when* and in which order:

    create   default → prepare_for_create → validate → warnings_on_create → canonicalize
             → (admission) → read_back → stored
    update   default → prepare_for_update → validate_update → warnings_on_update → canonicalize
             → (admission) → read_back → stored
    delete   check_graceful_delete (may set a period) → finalizers → removed

Objects are dicts in the hub version; ``prepare_*``, ``default`` and ``canonicalize`` change them in place. An ``old``
object is never to be changed. Hooks are synchronous and do no I/O. Subresources that write the same object (``status``)
have a strategy of their own, made by ``subresource``. Switches are
grouped in ``strategy_rules``; rules that a feature gate switches ask ``gates``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from pilothouse.apis.gates import default_gates
from pilothouse.apis.object_names import NameValidator, name_is_dns_subdomain
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules, MetadataRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.raw import Texts, Writing

NamespaceLabels = Callable[[str], Mapping[str, str] | None]
"""The labels of a namespace by its name; None for one that is not there."""


@dataclass(slots=True)
class Context:
    """What a hook may know of the request it serves."""

    user: str = ""
    namespace: str = ""
    verb: str = ""
    subresource: str = ""
    now: str = ""
    """The request's time as RFC 3339, for timestamps that strategies set."""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    groups: tuple[str, ...] = ()
    user_uid: str = ""
    user_extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    raw: Writing | None = None
    """How raw JSON values of the wanted object are written; None where the kind has none."""
    gated_given: bool = False
    """Whether the wanted object had fields of features that are off."""
    raw_texts: Texts = field(default_factory=dict)
    """The raw values of the object that replaces a stored one, as they will be written."""
    raw_changed: bool = False
    """Whether a raw value outside the status has another text than the stored one."""
    metadata_errors: Sequence[FieldError] = ()
    """What is wrong with the wanted object's metadata, for strategies that judge less where that is so."""
    noted: Any = None
    """What the rules of a strategy found out that its warnings need as well."""
    glimpse: tuple[Any, Object] | None = None
    """The stored object as it was seen before, by its entry; whoever takes it takes it away."""
    weight: int = 0
    """The size of the largest object or body that the request has to do with: long ones are worked on aside."""


class Doc(NamedTuple):
    """A description taken from a field's documentation: ``Doc("core.v1.PodStatus", "podIP")``."""

    type: str
    field: str
    without: str = ""
    """An ending that older versions of the description, which some columns quote, do not have."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. ``cell`` makes JSON of the hub object or, where the present matters, a value of ``ages``.

    Columns of priority 1 show with ``-o wide``.
    """

    name: str
    type: str
    cell: Callable[[Object], Any]
    format: str = ""
    priority: int = 0
    description: str | Doc = ""


class HiddenField(NamedTuple):
    """A field of the spec that is kept and not shown while ``applies``."""

    name: str
    applies: Callable[[Object], bool]


class Strategy:
    """The defaults every resource starts from. Subclasses change what differs."""

    validate_name: ClassVar[staticmethod[[str, bool], list[str]]] = staticmethod(name_is_dns_subdomain)
    update_rules: ClassVar[UpdateRules] = UpdateRules()
    generation_rules: GenerationRules = GenerationRules()
    metadata_rules: ClassVar[MetadataRules] = MetadataRules()
    deletion_rules: ClassVar[DeletionRules] = DeletionRules()
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {}
    columns: ClassVar[tuple[Column, ...]] = ()
    list_columns: ClassVar[staticmethod[[Iterable[Object]], tuple[Column, ...]] | None] = None
    """The columns of a list of these objects, for kinds of which a row depends on the others."""
    hidden_annotations: ClassVar[tuple[str, ...]] = ()
    """Annotations that stand for fields of the spec, and so are no part of the metadata when that is shown alone."""
    blank: ClassVar[Mapping[str, Any]] = {}
    """What an object shows that nobody gave any content: where kube-apiserver holds a plain number, its zero."""
    status_field: ClassVar[str] = "status"
    reset_fields: tuple[str, ...] = ()
    """Dotted paths that writes through this endpoint never change, so that nobody comes to own them through it."""

    def __init__(self, gates: frozenset[str] | None = None, labels_of: NamespaceLabels | None = None) -> None:
        self.gates = default_gates() if gates is None else gates
        """The feature gates that are on: one set, shared by all strategies of a server."""
        self.labels_of = labels_of
        """For rules that depend on the namespace; None where nothing is stored."""

    @property
    def strict_addresses(self) -> bool:
        """Whether addresses in older fields must be unambiguous."""
        return "StrictIPCIDRValidation" in self.gates

    def subresource(self, name: str) -> Strategy:
        """The strategy for writing the same object through a subresource."""
        return self.subresources[name](self.gates, self.labels_of)

    def default(self, obj: Object) -> None:
        """Fill in what the user left open. Must be idempotent."""

    def default_older(self, obj: Object, api_version: str) -> None:
        """Fill in what only an older version of the kind, which a patch may name, fills in."""

    def name_rule(self, obj: Object) -> NameValidator:
        """What a new object's name must look like, for kinds where that depends on the object."""
        return self.validate_name

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Drop what a creator may not set (status …)."""

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        """Put back what an updater may not change."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        """Errors of a new object, beyond its metadata."""
        return []

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        """Errors of a changed object, beyond its metadata."""
        return []

    def is_heavy(self, obj: Object) -> bool:
        """Whether judging the object takes so long that it is to be done in a thread."""
        return False

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return []

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return []

    def warnings_on_delete(self, ctx: Context, policy_given: bool) -> list[str]:
        """Told before anything is deleted; ``policy_given``: the client chose what becomes of dependents."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Bring a valid object into its one stored form."""

    def read_back(self, obj: Object) -> None:
        """Give an object that is about to be stored what reading it will."""
        if self.completed_when_read:
            self.default(obj)

    def check_graceful_delete(self, ctx: Context, obj: Object, grace: int | None) -> int | None:
        """The grace period to delete with, or None where the kind knows no graceful deletion."""
        return None

    def begin_deletion(self, ctx: Context, obj: Object) -> bool:
        """Mark an object that is to go for the first time; True when that is all that happens now (namespaces)."""
        return False

    def is_held(self, obj: Object) -> bool:
        """Whether the object itself, beyond its finalizers, says that it may not be removed yet."""
        return False

    def row_conditions(self, obj: Object) -> list[dict[str, Any]]:
        """What a table's row says about the object beside its cells."""
        return []

    def fields(self, obj: Object) -> dict[str, str]:
        """Values for field selectors, beyond metadata.name and metadata.namespace."""
        return {}

    field_labels: ClassVar[frozenset[str]] = frozenset()
    """Fields beyond name and namespace that a selector may use."""

    completed_when_read: ClassVar[bool] = False
    """Whether objects are stored without some of their defaults: what a write takes away, or puts in where a default
    depends on it, comes back with the next reading. Validating admission is not shown it."""

    hidden: ClassVar[HiddenField | None] = None
    """What is stored of some objects and shown to nobody but their next change."""

    field_sources: ClassVar[frozenset[str] | None] = None
    """The paths of all that ``fields`` looks at, defaults of these included. Where they are named, large numbers of
    objects are put into the cache without being read whole."""

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        """The field a selector means, under the name ``fields`` gives it; ``ValueError`` for one it may not use."""
        if name in ("metadata.name", "metadata.namespace") or name in self.field_labels:
            return name, value
        if not self.field_labels:
            known = '"metadata.name", "metadata.namespace"'
            raise ValueError(f"{quote(name)} is not a known field selector: only {known}")
        raise ValueError(f"field label not supported: {name}")


class PlainStrategy(Strategy):
    """For resources with nothing special but a spec that counts generations and a status of its own."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        if "status" in self.subresources and self.status_field in obj:
            obj[self.status_field] = {}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        if "status" in self.subresources:
            keep(obj, old, self.status_field)


class StatusStrategy(Strategy):
    """Writes through ``/status``: only the status may change, and managed metadata."""

    reset_fields: tuple[str, ...] = ("spec",)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        kept = obj.get(self.status_field)
        metadata = obj["metadata"]
        for key in list(obj):
            if key not in ("kind", "apiVersion", "metadata", self.status_field):
                keep(obj, old, key)
        for key in old:
            if key not in obj:
                obj[key] = old[key]
        if kept is None:
            obj.pop(self.status_field, None)
        obj["metadata"] = metadata


def keep(obj: Object, old: Mapping[str, Any], *names: str) -> None:
    """Give these fields the values they had."""
    for name in names:
        if name in old:
            obj[name] = old[name]
        else:
            obj.pop(name, None)
