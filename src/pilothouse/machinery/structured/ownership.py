"""Who owns which fields, through updates and applies.

A manager owns a set of fields in the version in which it wrote them. An update takes what it changes from everybody
else. An apply claims what its configuration has, conflicts with others who own a different value, and takes away what
the manager applied before and nobody wants any more. Objects of other versions come from a ``Converter``; a version
that no longer exists takes its managers' claims with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pilothouse.machinery.structured.comparison import Comparison, compare
from pilothouse.machinery.structured.descriptions import to_field_set
from pilothouse.machinery.structured.field_sets import (
    FieldSet,
    difference,
    intersection,
    paths_of,
    recursive_difference,
    union,
)
from pilothouse.machinery.structured.merging import merge
from pilothouse.machinery.structured.paths import Path
from pilothouse.machinery.structured.reconciliation import reconcile, with_named_fields
from pilothouse.machinery.structured.removal import remove_items
from pilothouse.machinery.structured.shapes import Shape


@dataclass(frozen=True, slots=True)
class Owned:
    """What one manager owns."""

    fields: FieldSet
    version: str
    applied: bool


Filter = Callable[[FieldSet], FieldSet]
"""Leaves of a set what counts."""

Managers = dict[Any, Owned]
"""By manager, whatever identifies one."""


class MissingVersion(Exception):
    """The wanted version does not exist (any more)."""


class Unconvertible(Exception):
    """The value does not fit the wanted version; the message says at which step that showed."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value in one version of its kind."""

    shape: Shape
    value: Any
    version: str


class Converter(Protocol):
    """Turns a value into another version; ``MissingVersion`` for one it does not know, or ``Unconvertible``."""

    def __call__(self, value: Versioned, version: str, /) -> Versioned: ...


class Conflicts(Exception):
    """An apply that would change what others own: pairs of manager and path."""

    def __init__(self, conflicts: list[tuple[Any, Path]]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Ownership:
    """The rules for one kind of object. ``ignored`` are, by version, the fields that writes here do not count for.

    Instead of a set it may be a filter that leaves the fields which do count.
    """

    def __init__(self, convert: Converter, ignored: Mapping[str, FieldSet | Filter]) -> None:
        self._convert = convert
        self._filters = {version: _filter(fields) for version, fields in ignored.items()}

    def update(
        self, live: Versioned, new: Versioned, managers: Managers, comparison: Comparison | None = None
    ) -> tuple[Managers, FieldSet]:
        """What everybody owns after a plain write, and the fields that this write changed.

        ``comparison`` is that of the two, if it has been made, of all their fields.
        """
        comparison = self._compare(live, new) if comparison is None else self._counted(comparison, new.version)
        managers = self._reconciled(live, managers)
        if comparison.is_same and all(owned.version == new.version for owned in managers.values()):
            return managers, {}
        left, _ = self._take(live, new, managers, {new.version: comparison}, None, force=True)
        return left, comparison.changed

    def apply(
        self, live: Versioned, config: Versioned, managers: Managers, manager: Hashable, *, force: bool
    ) -> tuple[Versioned, Managers]:
        """The live object with the configuration laid over it, and what everybody owns then."""
        managers = self._reconciled(live, managers)
        merged = Versioned(live.shape, merge(live.shape, live.value, config.value), live.version)
        last = managers.get(manager)
        claimed = to_field_set(config.shape, config.value)
        if config.version in self._filters:
            claimed = self._filters[config.version](claimed)
        managers[manager] = Owned(claimed, config.version, True)
        if last is not None and last.fields and not self._prunes_nothing(merged, managers[manager], last):
            merged = self._prune(merged, managers, manager, last)
        try:
            left, conflicts = self._take(live, merged, managers, {}, manager, force=force)
        except Unconvertible:
            if last is not None and last.fields:
                self._prune(merged, managers, manager, last)  # for there it shows first, whatever there is to prune
            raise
        if conflicts:
            raise Conflicts(conflicts)
        return merged, left

    def _compare(self, live: Versioned, new: Versioned) -> Comparison:
        return self._counted(compare(new.shape, live.value, new.value), new.version)

    def _counted(self, comparison: Comparison, version: str) -> Comparison:
        """A comparison without what writes do not count for."""
        counts = self._filters.get(version)
        if counts is None:
            return comparison
        return Comparison(counts(comparison.removed), counts(comparison.modified), counts(comparison.added))

    def _reconciled(self, live: Versioned, managers: Managers) -> Managers:
        """All managers of known versions, their sets following today's schema."""
        out: Managers = {}
        shapes: dict[str, Shape | None] = {live.version: live.shape}
        for manager, owned in managers.items():
            if owned.version not in shapes:
                try:
                    shapes[owned.version] = self._convert(live, owned.version).shape
                except MissingVersion:
                    shapes[owned.version] = None
            shape = shapes[owned.version]
            if shape is not None:
                fields = reconcile(owned.fields, shape)
                out[manager] = owned if fields is owned.fields else Owned(fields, owned.version, owned.applied)
        return out

    def _take(
        self,
        live: Versioned,
        new: Versioned,
        managers: Managers,
        comparisons: dict[str, Comparison | None],
        taker: Hashable | None,
        *,
        force: bool,
    ) -> tuple[Managers, list[tuple[Any, Path]]]:
        """Take what changed from all others. Without force, what they would lose is returned instead.

        ``comparisons`` are those made so far, by version: whoever is alone needs none.
        """
        changed: dict[str, FieldSet] = {}
        left: Managers = {}
        conflicts: list[tuple[Any, Path]] = []
        for manager, owned in managers.items():
            if manager == taker:
                left[manager] = owned
                continue
            version = owned.version
            if version not in comparisons:
                comparisons[version] = self._compare_at(live, new, version)
            seen = comparisons[version]
            if seen is None:
                continue
            if version not in changed:
                changed[version] = seen.changed
            lost = intersection(owned.fields, changed[version])
            if lost and not force:
                conflicts += [(manager, path) for path in paths_of(lost)]
            fields = difference(difference(owned.fields, lost), seen.removed)
            left[manager] = owned if fields is owned.fields else Owned(fields, version, owned.applied)
        return {manager: owned for manager, owned in left.items() if owned.fields}, conflicts

    def _compare_at(self, live: Versioned, new: Versioned, version: str) -> Comparison | None:
        if version == live.version == new.version:
            return self._compare(live, new)
        try:
            old = self._show(live, version, "failed to convert old object")
            return self._compare(old, self._show(new, version, "failed to convert new object"))
        except MissingVersion:
            return None

    def _show(self, value: Versioned, version: str, failure: str) -> Versioned:
        try:
            return self._convert(value, version)
        except Unconvertible as error:
            raise Unconvertible(f"{failure}: {error}") from None

    def _prunes_nothing(self, merged: Versioned, now: Owned, last: Owned) -> bool:
        """Whether the manager owns all it did, so that there is nothing to take out."""
        return last.version == merged.version and not difference(last.fields, now.fields)

    def _prune(self, merged: Versioned, managers: Managers, manager: Hashable, last: Owned) -> Versioned:
        """Take out what the manager applied last time and neither it nor anybody else owns now."""
        try:
            return self._pruned(merged, managers, manager, last)
        except Unconvertible as error:
            raise Unconvertible(f"failed to prune fields: {error}") from None

    def _pruned(self, merged: Versioned, managers: Managers, manager: Hashable, last: Owned) -> Versioned:
        try:
            at_last = self._show(merged, last.version, "failed to convert merged object to last applied version")
        except MissingVersion:
            return merged
        shape = at_last.shape
        gone = with_named_fields(last.fields, shape)
        pruned = Versioned(shape, remove_items(shape, at_last.value, gone), last.version)
        pruned = self._add_back_owned(at_last, pruned, managers)
        pruned = self._add_back_dangling(at_last, pruned, last)
        return self._convert(pruned, managers[manager].version)

    def _add_back_owned(self, merged: Versioned, pruned: Versioned, managers: Managers) -> Versioned:
        by_version: dict[str, FieldSet] = {}
        for owned in managers.values():
            by_version[owned.version] = union(by_version.get(owned.version, {}), owned.fields)
        # The version that was pruned comes first: other conversions may need the fields that come back here.
        for version in sorted(by_version, key=lambda version: version != pruned.version):
            try:
                failure = "failed add back owned items: failed to convert {} object at version " + version
                merged = self._show(merged, version, failure.format("merged"))
                pruned = self._show(pruned, version, failure.format("pruned"))
            except MissingVersion:
                continue
            shape = merged.shape
            stays = union(
                with_named_fields(to_field_set(shape, pruned.value), shape),
                with_named_fields(by_version[version], shape),
            )
            goes = difference(with_named_fields(to_field_set(shape, merged.value), shape), stays)
            pruned = Versioned(shape, remove_items(shape, merged.value, goes), version)
        return pruned

    def _add_back_dangling(self, merged: Versioned, pruned: Versioned, last: Owned) -> Versioned:
        """Give back what went with the pruned fields but never was the manager's."""
        try:
            failure = "failed add back dangling items: failed to convert pruned object to last applied version"
            pruned = self._show(pruned, last.version, failure)
        except MissingVersion:
            return merged
        shape = merged.shape
        had = with_named_fields(to_field_set(shape, merged.value), shape)
        has = with_named_fields(to_field_set(shape, pruned.value), shape)
        goes = intersection(difference(had, has), with_named_fields(last.fields, shape))
        return Versioned(shape, remove_items(shape, merged.value, goes), merged.version)


def _filter(ignored: FieldSet | Filter) -> Filter:
    if not isinstance(ignored, dict):
        return ignored
    return lambda fields: recursive_difference(fields, ignored)
