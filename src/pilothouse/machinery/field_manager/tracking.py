"""The field manager of one kind: what every write does to ``metadata.managedFields``, and server-side apply.

An update goes through these steps, in this order:

    whose fields    the client's entries, or the live ones if it sent none, broken ones, or writes to a subresource
    nothing known   an object without managers stays without, unless it is new or being applied to
    ownership       what changed goes to the writer, fields that a strategy resets and identity fields apart
    time            the writer's entry gets the present, if the write changed anything
    capping         at most ten update entries

An apply merges first; before the first apply of an object without managers, all it has goes to
``before-first-apply``. Objects come in the manager's own version. Tracking never fails a plain write: an object that
cannot be followed keeps the live entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final, TypeVar

from pilothouse.machinery import errors
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_manager import last_applied
from pilothouse.machinery.field_manager.answers import Answers, Ask, Unasked
from pilothouse.machinery.field_manager.capping import cap_updaters
from pilothouse.machinery.field_manager.conflicts import conflict_error
from pilothouse.machinery.field_manager.entries import (
    APPLY,
    UPDATE,
    Entry,
    InvalidEntries,
    Managed,
    Manager,
    are_entries,
    is_reset,
    read_entries,
    write_entries,
)
from pilothouse.machinery.field_manager.known_updates import KnownUpdates
from pilothouse.machinery.gvk import GroupVersionKind, parse_group_version
from pilothouse.machinery.schema import decoding
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.structured.comparison import compare, same
from pilothouse.machinery.structured.descriptions import StepError
from pilothouse.machinery.structured.field_sets import FieldSet, difference, from_paths, has, union
from pilothouse.machinery.structured.ownership import (
    Conflicts,
    Filter,
    Managers,
    MissingVersion,
    Owned,
    Ownership,
    Unconvertible,
    Versioned,
)
from pilothouse.machinery.structured.shapes import Shape, shape_of
from pilothouse.machinery.structured.validation import SchemaMismatch, validate
from pilothouse.machinery.workers import weighed

Result = TypeVar("Result")

BEFORE_FIRST_APPLY: Final = "before-first-apply"

_IDENTITY: Final = from_paths(
    ("f:apiVersion",),
    ("f:kind",),
    ("f:metadata",),
    *(
        ("f:metadata", f"f:{name}")
        for name in (
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        )
    ),
)
"""Fields that nobody owns."""

Convert = Callable[[dict[str, Any], str, str], tuple[Struct | Shape, dict[str, Any]]]
"""An object, its version and the wanted one; gives the schema there and the object.

Raises ``MissingVersion`` where that is unknown, ``Unconvertible`` where the object does not fit it.
"""


class FieldsOfNew:
    """Which fields a new object has, kept for whoever makes the same object again."""

    __slots__ = ("fields",)

    def __init__(self) -> None:
        self.fields: FieldSet | None = None


class FieldManager:
    """Tracks the fields of one kind in one version, through the main resource or one subresource.

    ``reset_fields`` are, by version, the fields that the strategy resets anyway, or a filter for those it does not.
    ``dropped`` names fields that the strategy drops whatever they are: they are not validated with the object.
    ``may_mismatch`` tells that stored objects may not fit the schema, and so are looked at first. Where only others can
    convert there is ``ask`` instead of ``convert``, and what a manager is to do goes through ``waiting``.
    """

    def __init__(
        self,
        schema: Struct | Shape,
        gvk: GroupVersionKind,
        *,
        subresource: str = "",
        reset_fields: Mapping[str, FieldSet | Filter] | None = None,
        convert: Convert | None = None,
        ask: Ask | None = None,
        may_mismatch: bool = False,
        dropped: Callable[[str], bool] | None = None,
    ) -> None:
        self.gvk = gvk
        self.subresource = subresource
        self.version = str(gvk.group_version)
        self._shape = _shape(schema)
        self._schema = schema
        self._convert_object = convert
        self._ask = ask
        self._may_mismatch, self._dropped = may_mismatch, dropped
        self._reset_fields = reset_fields or {}
        self._ownership = Ownership(self._convert, self._reset_fields)
        self._known = KnownUpdates()
        self._blank: dict[str, Any] | None = None

    @property
    def asks(self) -> bool:
        """Whether only others can convert objects to other versions."""
        return self._ask is not None

    async def waiting(self, weight: int, work: Callable[[FieldManager], Result]) -> Result:
        """What work on objects of that weight gives, made anew whenever others have converted what it came to need."""
        assert self._ask is not None
        answers = Answers(self._ask, self.version)
        manager = copy(self)
        manager._convert_object = answers
        manager._ownership = Ownership(manager._convert, self._reset_fields)
        while True:
            try:
                return await weighed(weight, work, manager)
            except Unasked as unasked:
                missing = unasked
            await answers.fetch(missing)

    @property
    def shape(self) -> Shape:
        """How objects of this endpoint merge."""
        return self._shape

    @property
    def blank(self) -> dict[str, Any]:
        """The object before it has anything: what a new object is compared with."""
        if self._blank is None:
            self._blank = self._make_blank()
        return self._blank

    def _make_blank(self) -> dict[str, Any]:
        named = {"kind": self.gvk.kind, "apiVersion": self.version}
        schema = self._schema
        return decoding.decode(schema, named)[0] if isinstance(schema, Struct) else named

    def update(
        self,
        live: dict[str, Any] | None,
        new: dict[str, Any],
        manager: str,
        now: str,
        known: FieldsOfNew | None = None,
    ) -> dict[str, Any]:
        """The new object with its entries, after a create (no live object), update or patch.

        What is ``known`` is of objects with the same fields as the new one; what is not known yet is noted there.
        """
        metadata = new.get("metadata")
        if not isinstance(metadata, dict):
            return new
        try:
            if live is None and not metadata.get("managedFields"):
                return set_entries(new, self._first_entries(new, manager, now, known))
            return set_entries(new, self._updated_entries(live, new, manager, now))
        except (SchemaMismatch, StepError, InvalidEntries, StatusError, Unconvertible, RecursionError):
            # A version that cannot be converted to right now is no reason either to refuse the write.
            return set_entries(new, entries_of(live))

    def _first_entries(
        self, new: dict[str, Any], manager: str, now: str, known: FieldsOfNew | None = None
    ) -> list[Entry]:
        """Those of a new object that brings none along: whatever it has is its creator's."""
        fields = None if known is None else known.fields
        if fields is None:
            self._check_new(None, new)
            writer = Manager(manager or "unknown", UPDATE, self.version, self.subresource)
            owners, wrote = self._owners(self.blank, new, {}, writer)
            fields = owners[writer].fields if wrote else {}
            if known is not None:
                known.fields = fields
        if not fields:
            return []
        entry: Entry = {
            "manager": manager or "unknown",
            "operation": UPDATE,
            "apiVersion": self.version,
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return [entry]

    def _updated_entries(self, live: dict[str, Any] | None, new: dict[str, Any], manager: str, now: str) -> list[Entry]:
        managed = self._managed(live, new)
        if not managed.managers and live is not None and live.get("metadata", {}).get("uid"):
            return []
        self._check_new(live, new)
        self._track(live or self.blank, new, managed, manager, now)
        return write_entries(managed)

    def _managed(self, live: dict[str, Any] | None, new: dict[str, Any]) -> Managed:
        theirs, ours = new["metadata"].get("managedFields"), entries_of(live)
        if self.subresource or theirs == ours:
            return _read_or_nothing(ours)
        if is_reset(theirs):
            return Managed()
        try:
            managed = read_entries(theirs)
        except InvalidEntries:
            managed = Managed()
        return managed if managed.managers else _read_or_nothing(ours)

    def _track(self, live: dict[str, Any], new: dict[str, Any], managed: Managed, manager: str, now: str) -> None:
        """Give the writer what it changed."""
        # A new object that does not fit is refused anyway, unless the live one is no better.
        self._check_stored(live)
        writer = Manager(manager or "unknown", UPDATE, self.version, self.subresource)
        managed.managers, wrote = self._owners(live, new, managed.managers, writer)
        if wrote:
            managed.times[writer] = now
        cap_updaters(managed)

    def _owners(
        self, live: dict[str, Any], new: dict[str, Any], managers: Managers, writer: Manager
    ) -> tuple[Managers, bool]:
        """Who owns what after a change, and whether the writer owns something by it."""
        comparison = compare(self._shape, live, new)
        change = self._known.change(comparison, managers, writer, self.version)
        found = None if change is None else self._known.recall(change, managers, self.version)
        if found is not None:
            return found
        left, changed = self._ownership.update(self._versioned(live), self._versioned(new), managers, comparison)
        changed = difference(changed, _IDENTITY)
        if changed:
            before = left.get(writer)
            left[writer] = Owned(changed if before is None else union(changed, before.fields), self.version, False)
        if change is not None:
            self._known.note(change, managers, left, bool(changed))
        return left, bool(changed)

    def apply(
        self, live: dict[str, Any] | None, patch: dict[str, Any], manager: str, *, force: bool, now: str
    ) -> dict[str, Any]:
        """The live object (or a new one) with the patch laid over it, not yet defaulted or validated.

        It is made of parts of both, and of nothing that anybody else knows.
        Raises a Status: 409 with the conflicts, 400 for a patch of another kind, 500 for one that fits no schema.
        """
        try:
            managed = read_entries(entries_of(live), trusted=True)
        except InvalidEntries as error:
            raise errors.generic(f"failed to decode managed fields: {error}") from None
        self.check_patch(patch)
        try:
            merged = self._apply(live or self._make_blank(), patch, managed, manager, force=force, now=now)
        except Conflicts as error:
            raise conflict_error(error.conflicts) from None
        except Unconvertible as error:
            raise errors.generic(str(error)) from None
        except RecursionError:
            raise errors.bad_request("error decoding patch: exceeded max depth") from None
        if manager == last_applied.KUBECTL:
            merged = last_applied.refresh(merged, patch)
        return set_entries(merged, write_entries(managed))

    def _apply(
        self, live: dict[str, Any], patch: dict[str, Any], managed: Managed, manager: str, *, force: bool, now: str
    ) -> dict[str, Any]:
        if not managed.managers:
            try:
                self._check_stored(live)
                self._track(self.blank, live, managed, BEFORE_FIRST_APPLY, now)
            except (SchemaMismatch, StepError) as error:
                what = "failed to create manager for existing fields: failed to convert new object"
                raise self._mismatch(f"{what} ({named(live, self.gvk)}) to smd typed", live, error) from None
        self._validate_patch(patch)
        applier = Manager(manager or "unknown", APPLY, "", self.subresource)
        own, theirs = self._versioned(live), self._versioned(patch)
        try:
            self._check_stored(live)
            merged, managers = self._ownership.apply(own, theirs, managed.managers, applier, force=force)
        except (SchemaMismatch, StepError) as error:
            what = f"failed to create typed live object ({named(live, self.gvk)})"
            raise self._mismatch(what, live, error) from None
        except Conflicts as error:
            if manager != last_applied.KUBECTL:
                raise
            self._check_migration(live, error)
            merged, managers = self._ownership.apply(own, theirs, managed.managers, applier, force=True)
        claimed = difference(managers[applier].fields, _IDENTITY) if applier in managers else {}
        if claimed:
            managers[applier] = Owned(claimed, self.version, True)
        else:
            managers.pop(applier, None)
        managed.managers = managers
        if same(self._shape, live, merged.value):
            return live
        managed.times[applier] = now
        return merged.value if isinstance(merged.value, dict) else {}

    def check_patch(self, patch: dict[str, Any]) -> None:
        """Refuse what is to be applied if it is of another kind, or brings owners of fields."""
        given = _gvk_of(patch)
        if given != self.gvk:
            raise errors.bad_request(f"invalid object type: {given}")
        metadata = patch.get("metadata")
        if isinstance(metadata, dict) and are_entries(metadata.get("managedFields")):
            raise errors.bad_request("metadata.managedFields must be nil")

    def _check_stored(self, obj: dict[str, Any]) -> None:
        if self._may_mismatch:
            validate(self._shape, obj, allow_duplicates=True)

    def _check_new(self, live: dict[str, Any] | None, new: dict[str, Any]) -> None:
        """What does not fit is refused later on, but for the fields that the strategy drops."""
        self._check_stored(new)
        if self._may_mismatch or self._dropped is None:
            return
        for name in filter(self._dropped, new):
            if live is None or new[name] != live.get(name):
                validate(self._shape, {name: new[name]}, allow_duplicates=True)

    def _validate_patch(self, patch: dict[str, Any]) -> None:
        try:
            validate(self._shape, patch)
        except SchemaMismatch as error:
            raise errors.generic(f"failed to create typed patch object ({named(patch, self.gvk)}): {error}") from None

    def _mismatch(self, what: str, live: dict[str, Any], error: ValueError) -> StatusError:
        """The refusal of a stored object that the schema of its kind does not fit."""
        try:
            validate(self._shape, live, allow_duplicates=True)
        except SchemaMismatch as mismatch:
            error = mismatch
        return errors.generic(f"{what}: {error}")

    def _check_migration(self, live: dict[str, Any], error: Conflicts) -> None:
        """Conflicts over what kubectl applied from the client side are none."""
        allowed = last_applied.owned_by_annotation(self._shape, live, self.version)
        if allowed is None:
            raise error
        rest = [conflict for conflict in error.conflicts if not has(allowed, conflict[1])]
        if rest:
            raise Conflicts(rest)

    def _versioned(self, value: dict[str, Any]) -> Versioned:
        return Versioned(self._shape, value, self.version)

    def _convert(self, value: Versioned, version: str, /) -> Versioned:
        if value.version == version:
            return value
        try:
            parse_group_version(version)
        except ValueError as error:
            raise Unconvertible(str(error)) from None
        if self._convert_object is None:
            raise MissingVersion(version)
        schema, converted = self._convert_object(value.value, value.version, version)
        return Versioned(_shape(schema), converted, version)


def set_entries(value: dict[str, Any], entries: list[Entry]) -> dict[str, Any]:
    """The object with these entries and no others; only its top and metadata are copied."""
    metadata = dict(value["metadata"]) if isinstance(value.get("metadata"), dict) else {}
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)
    return {**value, "metadata": metadata}


def _shape(schema: Struct | Shape) -> Shape:
    return shape_of(schema) if isinstance(schema, Struct) else schema


def entries_of(value: dict[str, Any] | None) -> list[Entry]:
    """The entries of an object, if there is one and it has any."""
    return (value.get("metadata") or {}).get("managedFields") or [] if value is not None else []


def _read_or_nothing(entries: list[Entry]) -> Managed:
    try:
        return read_entries(entries, trusted=True)
    except InvalidEntries:
        return Managed()


def _gvk_of(value: dict[str, Any]) -> GroupVersionKind:
    version, kind = value.get("apiVersion"), value.get("kind")
    try:
        group_version = parse_group_version(version if isinstance(version, str) else "")
    except ValueError:
        return GroupVersionKind("", "", "")
    return GroupVersionKind(*group_version, kind if isinstance(kind, str) else "")


def named(value: dict[str, Any], gvk: GroupVersionKind) -> str:
    """An object as messages about conversions name it."""
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace, name = metadata.get("namespace"), metadata.get("name")
    shown = "/".join(part if isinstance(part, str) else "" for part in (namespace, name))
    return f"{shown}; {gvk}"
