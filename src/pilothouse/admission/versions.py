"""The versions that the same objects are served in, and objects in the version that a webhook or a policy wants to see.

Built-in kinds are converted by their tables, custom ones as their definition says: by a change of ``apiVersion``, or by
its conversion webhook, which is waited for. Which built-in versions there are depends on what this server serves; a
definition's versions count whether they are served or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for, own_defaults
from pilothouse.apis.resources import Resource, table
from pilothouse.apis.strategies import strategy_for
from pilothouse.endpoints.admission import Attributes
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.emptied import without_notes
from pilothouse.machinery.structured.shapes import Shape, shape_of
from pilothouse.machinery.workers import weighed


class Wanted(Protocol):
    """A version that somebody wants to see a request in."""

    @property
    def resource(self) -> GroupVersionResource: ...

    @property
    def kind(self) -> GroupVersionKind: ...


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Another version of a resource or subresource."""

    resource: GroupVersionResource
    kind: GroupVersionKind


class Converted(Protocol):
    """What a conversion webhook answered."""

    @property
    def objects(self) -> list[Object]: ...

    @property
    def weight(self) -> int: ...


class Converter(Protocol):
    """A conversion webhook."""

    async def convert(self, objects: list[Object], version: GroupVersion, weight: int) -> Converted: ...


class Schema(Protocol):
    """The schema of one version."""

    def default(self, obj: Object) -> None: ...


class DefinedVersions(Protocol):
    """The versions of a definition."""

    @property
    def schemas(self) -> Mapping[str, Schema]: ...

    @property
    def converter(self) -> Converter | None: ...


class Definition(Protocol):
    """A custom resource definition that is served."""

    @property
    def versions(self) -> DefinedVersions: ...

    def resource(self, version: str) -> Resource: ...

    def scope(self, version: str, subresource: str = "") -> ResourceScope | None: ...

    def schema(self, version: str) -> Object: ...

    def shape(self, version: str) -> Shape: ...


class Definitions(Protocol):
    """All of them, as they are now."""

    def of_kind(self, kind: GroupVersionKind) -> Definition | None: ...

    def of_resource(self, resource: GroupVersionResource) -> Definition | None: ...


class ServedVersions:
    """What a server serves: some of the built-in versions (by default those that are on), and custom resources."""

    def __init__(self, enabled: Collection[GroupVersion] | None = None, definitions: Definitions | None = None) -> None:
        self.definitions = definitions
        if enabled is None:
            enabled = {gv for gv, version in table().items() if version.is_default}
        self._enabled = enabled
        self._known: dict[tuple[GroupVersionResource, str], tuple[Equivalent, ...]] = {}

    def equivalents(self, attributes: Attributes) -> tuple[Equivalent, ...]:
        """The other versions in which a request could have been made."""
        key = (attributes.resource, attributes.subresource)
        found = self._known.get(key)
        if found is None:
            if row_of(attributes.resource) is None:
                return self._defined(*key)
            found = self._known[key] = self._built_in(*key)
        return found

    def find(self, group: str, version: str, name: str) -> list[Resource]:
        """The resources of a name, plural or singular, at a version; without a group those of any group."""
        rows = [
            row
            for gv in self._enabled
            if gv.version == version and group in ("", gv.group)
            for row in table()[gv].resources
            if name in (row.name, row.singular)
        ]
        definition = self._definition(GroupVersionResource(group, version, name))
        return rows if definition is None else [*rows, definition.resource(version)]

    def _built_in(self, resource: GroupVersionResource, subresource: str) -> tuple[Equivalent, ...]:
        rows = [row for gv, version in table().items() if gv in self._enabled for row in version.resources]
        own = row_of(resource)
        if own is None or not own.is_stored:
            return ()
        return _others(resource, subresource, [row for row in rows if row.key == own.key])

    def _defined(self, resource: GroupVersionResource, subresource: str) -> tuple[Equivalent, ...]:
        definition = self._definition(resource)
        if definition is None:
            return ()
        rows = [definition.resource(version) for version in definition.versions.schemas]
        return _others(resource, subresource, rows)

    def _definition(self, resource: GroupVersionResource) -> Definition | None:
        return self.definitions.of_resource(resource) if self.definitions is not None else None

    async def to_version(self, attributes: Attributes, wanted: Wanted, obj: Object | None) -> Object | None:
        """A hub object as it is wanted, with kind and apiVersion. Raises the 500 for one that cannot be converted."""
        if obj is None:
            return None
        if row_of(wanted.resource) is None and wanted.kind != attributes.kind:
            return await self._convert(attributes, wanted.kind, without_notes(obj))
        return await weighed(attributes.weight, _to_version, attributes, wanted, obj)

    async def from_version(self, attributes: Attributes, wanted: Wanted, value: Any) -> Object:
        """A changed object back in the hub version, decoded and defaulted; raises the 500 for what cannot be one."""
        scope = attributes.scope
        if row_of(wanted.resource) is None and wanted.kind != attributes.kind:
            value = await self._convert_back(attributes, wanted.kind, value)
        elif not isinstance(scope, ResourceScope) or wanted.kind != attributes.kind:
            gates = scope.store.strategy.gates if isinstance(scope, ResourceScope) else None
            return await weighed(attributes.weight, _decode_other, wanted, value, gates)
        if not isinstance(scope, ResourceScope):
            return _require_object(value)
        return await weighed(attributes.weight, _decode_own, scope, value, wanted.kind == attributes.kind)

    async def _convert(self, attributes: Attributes, kind: GroupVersionKind, obj: Object) -> Object:
        definition = self._definition(attributes.resource)
        gv = kind.group_version
        converter = definition.versions.converter if definition is not None else None
        if converter is None:
            return {**obj, "apiVersion": str(gv), "kind": kind.kind}
        try:
            copied = await weighed(attributes.weight, _copy, obj)
            converted = await converter.convert([copied], gv, attributes.weight)
        except errors.StatusError as error:
            raise errors.internal_error(error.message) from None
        attributes.weight = max(attributes.weight, converted.weight)
        return converted.objects[0]

    async def _convert_back(self, attributes: Attributes, kind: GroupVersionKind, value: Any) -> Object:
        obj = await weighed(attributes.weight, _copy, _require_object(value))
        definition = self._definition(attributes.resource)
        if definition is not None:
            await weighed(attributes.weight, definition.versions.schemas[kind.version].default, obj)
        return await self._convert(attributes, attributes.kind, obj)

    def shape_of(self, attributes: Attributes, wanted: Wanted) -> Shape:
        """How objects of the wanted version merge; raises the 503 for a kind that is not known yet."""
        kind = wanted.kind
        struct = types.find_kind(kind)
        if struct is not None:
            return shape_of(struct)
        definition = self._definition(attributes.resource)
        if definition is not None and kind.version in definition.versions.schemas:
            return definition.shape(kind.version)
        scope = attributes.scope
        if isinstance(scope, ResourceScope) and kind == attributes.kind and scope.field_manager is not None:
            return scope.field_manager.shape
        why = (
            f"Resource kind {kind} not found. There can be a delay between when CustomResourceDefinitions are "
            "created and when they are available."
        )
        raise errors.StatusError(503, "ServiceUnavailable", why)


def row_of(resource: GroupVersionResource) -> Resource | None:
    """The row of the resource table, None for custom resources."""
    version = table().get(resource.group_version)
    if version is None:
        return None
    return next((row for row in version.resources if row.name == resource.resource), None)


def _others(resource: GroupVersionResource, subresource: str, rows: list[Resource]) -> tuple[Equivalent, ...]:
    found = []
    for row in rows:
        coordinates = GroupVersionResource(row.group, row.version, row.name)
        kind = _kind_of(row, subresource)
        if coordinates != resource and kind is not None:
            found.append(Equivalent(coordinates, kind))
    return tuple(found)


def _kind_of(row: Resource, subresource: str) -> GroupVersionKind | None:
    """The kind that a resource or its subresource takes; None where it has no such subresource."""
    if not subresource:
        return row.gvk
    return next((each.kind for each in row.subresources if each.name == subresource), None)


def _require_object(value: Any) -> Object:
    if not isinstance(value, dict):
        raise errors.internal_error("the patched object is no object")
    return value


def _copy(obj: Object) -> Object:
    copied: Object = large_json.loads(large_json.dumps(obj))
    return copied


def _to_version(attributes: Attributes, wanted: Wanted, obj: Object) -> Object:
    """What tables and changes of ``apiVersion`` make of a hub object."""
    obj, kind, scope = without_notes(obj), wanted.kind, attributes.scope
    if kind == attributes.kind and isinstance(scope, ResourceScope):
        return scope.served_object(obj)
    row = row_of(wanted.resource)
    if row is not None and row.gvk == kind:
        _, from_hub = converters_for(row)
        if from_hub is not None:
            obj = from_hub(obj)
    return {**obj, "kind": kind.kind, "apiVersion": str(kind.group_version)}


def _decode_own(scope: ResourceScope, value: Any, is_as_requested: bool) -> Object:
    """The hub object, with defaults if it comes in the version of the request."""
    try:
        obj, _ = scope.expected.decode(value)
    except DecodeError as error:
        raise errors.internal_error(str(error)) from None
    for field in ("kind", "apiVersion"):
        if isinstance(value, dict) and field in value:
            obj.setdefault(field, value[field])
    return scope.defaulted(obj, scope.store.strategy) if is_as_requested else scope.hub_object(obj)


def _decode_other(wanted: Wanted, value: Any, gates: frozenset[str] | None) -> Object:
    row, struct = row_of(wanted.resource), types.find_kind(wanted.kind)
    if struct is None:
        return _require_object(value)
    try:
        obj, _ = decode(struct, value)
    except DecodeError as error:
        raise errors.internal_error(str(error)) from None
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if row is not None and row.gvk == wanted.kind:
        to_hub, _ = converters_for(row)
        if (default := own_defaults(row)) is not None:
            default(obj)
        obj = to_hub(obj) if to_hub is not None else obj
        strategy_for(row, gates).default(obj)
    return obj
