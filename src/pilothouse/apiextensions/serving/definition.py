"""Everything one definition serves, made from its object: a store and the endpoints of each served version."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Final

from pilothouse.apiextensions.serving.body import CustomBody
from pilothouse.apiextensions.serving.codec import CustomCodec
from pilothouse.apiextensions.serving.columns import table_columns
from pilothouse.apiextensions.serving.conversion import Converter, Rendering, Versions
from pilothouse.apiextensions.serving.leaving import ForbidCreate
from pilothouse.apiextensions.serving.scale import make_scale_scope, scale_checker
from pilothouse.apiextensions.serving.stores import CustomStore
from pilothouse.apiextensions.serving.strategies import (
    CustomStatusStrategy,
    CustomStrategy,
    StatusfulStrategy,
)
from pilothouse.apis import types
from pilothouse.apis.apiextensions import definitions
from pilothouse.apis.apiextensions.rules import compile_rules
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.shapes import object_shape
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installer import VERBS
from pilothouse.endpoints.negotiation import NO_PROTOBUF
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import jsonpath
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.go_quote import quote, show
from pilothouse.machinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.structured.field_sets import FieldSet, from_paths
from pilothouse.machinery.structured.ownership import Unconvertible
from pilothouse.machinery.structured.shapes import Shape
from pilothouse.machinery.structured.validating import SchemaMismatch, validate
from pilothouse.registry.storage import StorageFactory

Object = dict[str, Any]
PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_LEAVING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_STATUS_VERBS: Final = ("get", "patch", "update")
_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")


class ServedDefinition:
    """One definition at one state of its spec and accepted names."""

    def __init__(
        self,
        crd: Object,
        storage: StorageFactory,
        *,
        admission: Admission | None = None,
        converter: Converter | None = None,
        previous: ServedDefinition | None = None,
    ) -> None:
        self.crd = crd
        self.spec: Object = crd["spec"]
        self.names: Object = crd["status"]["acceptedNames"]
        self.group: str = self.spec["group"]
        self.plural: str = self.names["plural"]
        self.key = f"{self.group}/{self.plural}"
        self.namespaced = self.spec["scope"] == "Namespaced"
        self._storage = storage
        self._admission = ForbidCreate(admission) if definitions.is_terminating(crd) else admission
        self._scopes: dict[tuple[str, str], ResourceScope] = {}
        self._versions = {version["name"]: version for version in definitions.versions(crd)}
        self._id = uuid.uuid4().hex
        self.served_since: int = int(crd["metadata"]["resourceVersion"])
        self._shapes: dict[str, Shape] = {}
        self.versions: Versions
        if previous is not None and previous.is_same(crd):
            self._id, self._shapes, self.versions = previous._id, previous._shapes, previous.versions
            self.served_since = previous.served_since
        else:
            self.versions = self._make_versions(converter)

    def _make_versions(self, converter: Converter | None) -> Versions:
        keep = bool(self.spec.get("preserveUnknownFields"))
        schemas = {
            name: ObjectSchema(_schema_of(version), keeps_unknown=keep) for name, version in self._versions.items()
        }
        return Versions(self.group, self.names["kind"], definitions.storage_version(self.crd), schemas, converter)

    def is_same(self, crd: Object) -> bool:
        """Whether a state of the definition serves just what this one does."""
        return bool(
            crd["spec"] == self.spec
            and crd["status"]["acceptedNames"] == self.names
            and crd["metadata"]["uid"] == self.crd["metadata"]["uid"]
        )

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def served(self) -> list[str]:
        """The names of served versions."""
        return [name for name, version in self._versions.items() if version.get("served")]

    def resource(self, version: str) -> Resource:
        """The row that discovery shows."""
        leaving = definitions.is_true(self.crd, definitions.TERMINATING)
        return Resource(
            group=self.group,
            version=version,
            name=self.plural,
            singular=self.names.get("singular", ""),
            kind=self.names["kind"],
            package="unstructured",
            namespaced=self.namespaced,
            verbs=_LEAVING_VERBS if leaving else _VERBS,
            short_names=tuple(self.names.get("shortNames") or ()),
            categories=tuple(self.names.get("categories") or ()),
            key=self.key,
            stored=GroupVersion(self.group, self.versions.storage),
            hub=GroupVersion(self.group, version),
            subresources=self._subresources(version),
        )

    def _subresources(self, version: str) -> tuple[Subresource, ...]:
        declared = self._versions[version].get("subresources") or {}
        found = []
        if declared.get("status") is not None:
            found.append(Subresource("status", self.versions.gvk(version), _STATUS_VERBS))
        if declared.get("scale") is not None:
            found.append(Subresource("scale", _SCALE, _STATUS_VERBS))
        return tuple(found)

    def scope(self, version: str, subresource: str = "") -> ResourceScope | None:
        """An endpoint, made at its first use; None where the version has no such subresource."""
        key = (version, subresource)
        found = self._scopes.get(key)
        if found is None:
            resource = self.resource(version)
            if subresource and not any(sub.name == subresource for sub in resource.subresources):
                return None
            found = self._scopes[key] = self._make(resource, version, subresource)
        return found

    def _make(self, resource: Resource, version: str, subresource: str) -> ResourceScope:
        if subresource == "scale":
            return make_scale_scope(resource, self._main(version), self._versions, version)
        if subresource == "status":
            main = self._main(version)
            assert isinstance(main.strategy, CustomStrategy)
            assert isinstance(main.store, CustomStore)
            return self._make_scope(resource, version, "status", CustomStatusStrategy(main.strategy), main.store)
        strategy = self._strategy(version)
        strategy.gates = self._storage.gates
        rendering = Rendering(self.versions, version, f"{self._id}/{version}")
        codec = CustomCodec(self.versions, version, self._fields())
        cache = self._storage.cache(self.key, CustomCodec(self.versions, self.versions.storage, self._fields()))
        store = CustomStore(resource, strategy, cache, codec, self._storage.root, self.versions, rendering)
        store.oldest_watch = self.served_since
        store.is_stale = self._storage.is_stale
        return self._make_scope(resource, version, "", strategy, store, rendering)

    def _main(self, version: str) -> ResourceScope:
        main = self.scope(version)
        assert main is not None
        return main

    def _make_scope(
        self,
        resource: Resource,
        version: str,
        subresource: str,
        strategy: Strategy,
        store: CustomStore,
        rendering: Rendering | None = None,
    ) -> ResourceScope:
        gvk = self.versions.gvk(version)
        main = self._scopes.get((version, ""))
        return ResourceScope(
            resource=resource,
            subresource=subresource,
            kind=gvk,
            expected=CustomBody(
                gvk,
                types.struct("meta.v1.PartialObjectMetadata"),
                "unstructured",
                NO_PROTOBUF,
                schemas=self.versions.schemas,
            ),
            verbs={verb: VERBS[verb] for verb in (_STATUS_VERBS if subresource else _VERBS)},
            formats=NO_PROTOBUF,
            deprecation=definitions.deprecation_of(self.crd, self._versions[version]),
            store=store,
            strategy=strategy,
            keeps_type=True,
            render=rendering.render if rendering is not None else main.render if main is not None else None,
            prepare=store.prepare_list,
            list_kind=self.names.get("listKind", ""),
            columns=table_columns(self._versions[version].get("additionalPrinterColumns")),
            make_field_manager=lambda: self._field_manager(version, subresource),
            admission=self._admission,
            patch_types=PATCHES,
        )

    def _strategy(self, version: str) -> CustomStrategy:
        declared = self._versions[version].get("subresources") or {}
        schema = self.versions.schemas[version]
        made = StatusfulStrategy if declared.get("status") is not None else CustomStrategy
        paths = self._selectable(version)
        return made(
            self.versions.gvk(version),
            schema,
            rules=compile_rules(schema),
            scale_faults=scale_checker(declared["scale"]) if declared.get("scale") is not None else None,
            fields=self._fields(),
            selectable=frozenset(paths),
            namespaced=self.namespaced,
        )

    def _selectable(self, version: str) -> dict[str, jsonpath.JsonPath]:
        declared = self._versions[version].get("selectableFields") or ()
        return {each["jsonPath"].removeprefix("."): jsonpath.parse(each["jsonPath"]) for each in declared}

    def selectable_fields(self, version: str) -> list[str]:
        """The fields that selectors may use at a version."""
        return list(self._selectable(version))

    def _fields(self) -> Callable[[Object], dict[str, str]] | None:
        """Values for field selectors of all versions."""
        paths = {name: path for version in self._versions for name, path in self._selectable(version).items()}
        if not paths:
            return None
        return lambda obj: {name: _field_text(path, obj) for name, path in paths.items()}

    def schema(self, version: str) -> Object:
        """The schema of a version as it is written."""
        return _schema_of(self._versions[version])

    def shape(self, version: str) -> Shape:
        """How objects of a version merge."""
        found = self._shapes.get(version)
        if found is None:
            found = self._shapes[version] = object_shape(self.versions.schemas[version].node)
        return found

    def _field_manager(self, version: str, subresource: str) -> FieldManager:
        gvk = self.versions.gvk(version)
        return FieldManager(
            self.shape(version),
            gvk,
            subresource=subresource,
            reset_fields=self._reset_fields(version, subresource),
            convert=self._convert_for_managers,
            may_mismatch=len(self._versions) > 1 or self.crd["metadata"].get("generation", 1) > 1,
        )

    def _reset_fields(self, version: str, subresource: str) -> dict[str, FieldSet]:
        if subresource == "status":
            with_status = [name for name in self._versions if self._has_status(name)]
            return {f"{self.group}/{name}": from_paths(("f:metadata",), ("f:spec",)) for name in with_status}
        return {f"{self.group}/{version}": from_paths(("f:status",))} if self._has_status(version) else {}

    def _has_status(self, version: str) -> bool:
        return (self._versions[version].get("subresources") or {}).get("status") is not None

    def _convert_for_managers(self, obj: Object, old: str, new: str) -> tuple[Shape, Object]:
        group, _, version = new.rpartition("/")
        if group != self.group:
            kind = f"{old}, Kind={obj.get('kind', '')}"
            raise Unconvertible(f"{kind} is unstructured and is not suitable for converting to {quote(new)}")
        if version not in self._versions:
            # A version that is gone does not take its managers' claims with it: nobody can apply until they are reset.
            raise Unconvertible(f"request to convert CR to an invalid group/version: {new}")
        shape, converted = self.shape(version), {**obj, "apiVersion": new}
        try:
            validate(shape, converted)
        except SchemaMismatch as error:
            raise Unconvertible(str(error)) from None
        return shape, converted


def _schema_of(version: Object) -> Object:
    found: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _field_text(path: jsonpath.JsonPath, obj: Object) -> str:
    found = path.find(obj)
    if not found or found[0] is None:
        return ""
    value = found[0]
    return value if value.__class__ is str else show(value)
