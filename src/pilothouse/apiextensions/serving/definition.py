"""Everything one definition serves, made from its object: a store and the endpoints of each served version."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import orjson

from pilothouse.apiextensions.serving.additions import NO_ADDITIONS, NO_HOOKS, Additions
from pilothouse.apiextensions.serving.body import CustomBody
from pilothouse.apiextensions.serving.codec import CustomCodec
from pilothouse.apiextensions.serving.columns import table_columns
from pilothouse.apiextensions.serving.conversion import ConversionFailed, Converter, Rendering, Versions
from pilothouse.apiextensions.serving.departures import ForbidCreate
from pilothouse.apiextensions.serving.scale import make_scale_scope, scale_checker
from pilothouse.apiextensions.serving.stores import CustomStore
from pilothouse.apiextensions.serving.strategies import (
    CustomStatusStrategy,
    CustomStrategy,
    StatusfulStrategy,
)
from pilothouse.apis import types
from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.apiextensions.custom_resource_definition.rules import Rules, compile_rules
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.shapes import object_shape
from pilothouse.apis.apiextensions.schema.traversal import has_more_than
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Column, Strategy
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installer import VERBS
from pilothouse.endpoints.negotiation import NO_PROTOBUF
from pilothouse.endpoints.scope import Endpoint, ResourceScope
from pilothouse.machinery import jsonpath, large_json
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.go_quote import quote, show
from pilothouse.machinery.gvk import GroupResource, GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.machinery.structured.field_sets import FieldSet, from_paths
from pilothouse.machinery.structured.ownership import Unconvertible
from pilothouse.machinery.structured.shapes import Shape
from pilothouse.machinery.structured.validation import SchemaMismatch, validate
from pilothouse.machinery.workers import LONG, attempted, weighed
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.stored_form import MediaType

PATCHES: Final = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_LEAVING_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")
_STATUS_VERBS: Final = ("get", "patch", "update")
_MANY_SCHEMAS: Final = 300
_MANY_COLUMNS: Final = 300
"""More than that take longer to compile than the loop can be held."""
_DROPPED: Final[dict[str, Callable[[str], bool]]] = {
    "": "status".__eq__,
    "status": lambda name: name not in ("apiVersion", "kind", "metadata", "status"),
}
"""Fields that a write through the resource or its status does not change, whatever it says of them."""
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
        additions: Additions = NO_ADDITIONS,
    ) -> None:
        self.crd = crd
        self.spec: Object = crd["spec"]
        self.names: Object = crd["status"]["acceptedNames"]
        self.group: str = self.spec["group"]
        self.plural: str = self.names["plural"]
        self.key = f"{self.group}/{self.plural}"
        self.namespaced = self.spec["scope"] == "Namespaced"
        self._storage, self._additions = storage, additions
        self._admission = ForbidCreate(admission) if definitions.is_terminating(crd) else admission
        self._scopes: dict[tuple[str, str], ResourceScope] = {}
        self._own_endpoints: dict[tuple[str, str], Endpoint] = {}
        self._versions = {version["name"]: version for version in definitions.versions(crd)}
        self._id = uuid.uuid4().hex
        self.served_since: int = int(crd["metadata"]["resourceVersion"])
        self._shapes: dict[str, Shape] = {}
        self._rules: dict[str, Rules | None] = {}
        self._columns: dict[str, tuple[Column, ...]] = {}
        self.versions: Versions
        if previous is not None and previous.is_same(crd):
            self._id, self.versions = previous._id, previous.versions
            self._shapes, self._rules, self._columns = previous._shapes, previous._rules, previous._columns
            self.served_since = previous.served_since
        else:
            self.versions = self._make_versions(converter)

    def _make_versions(self, converter: Converter | None) -> Versions:
        keep = bool(self.spec.get("preserveUnknownFields"))
        schemas = {
            name: ObjectSchema(_schema_of(version), keeps_unknown=keep) for name, version in self._versions.items()
        }
        storage = definitions.storage_version(self.crd)
        return Versions(self.group, self.names["kind"], storage, schemas, converter, self._additions.convert)

    async def compile(self, version: str) -> None:
        """Make what requests at a version need of its schema: aside, if it is large."""
        if version in self._rules or version not in self.versions.schemas:
            return
        is_large = has_more_than(self.versions.schemas[version].source, _MANY_SCHEMAS)
        is_large = is_large or len(self._versions[version].get("additionalPrinterColumns") or ()) > _MANY_COLUMNS
        await attempted(LONG if is_large else 0, self._compile, version)

    def _compile(self, version: str) -> None:
        schema = self.versions.schemas[version]
        schema.compile()
        self.shape(version)
        self._columns[version] = self._make_columns(version)
        self._rules[version] = compile_rules(schema)

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
        row = self._row(version)
        own = [
            Subresource(name, endpoint.kind(row), endpoint.verbs)
            for name, endpoint in self._additions.endpoints.items()
            if name
        ]
        return replace(row, subresources=(*row.subresources, *own)) if own else row

    def _row(self, version: str) -> Resource:
        leaving = definitions.is_true(self.crd, definitions.TERMINATING)
        computed = self._additions.endpoints.get("")
        return Resource(
            group=self.group,
            version=version,
            name=self.plural,
            singular=self.names.get("singular", ""),
            kind=self.names["kind"],
            package="unstructured",
            namespaced=self.namespaced,
            verbs=computed.verbs if computed is not None else _LEAVING_VERBS if leaving else _VERBS,
            short_names=tuple(self.names.get("shortNames") or ()),
            categories=tuple(self.names.get("categories") or ()),
            key=self.key if computed is None else "",
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

    def endpoint(self, version: str, subresource: str = "") -> Endpoint | None:
        """An endpoint, made at its first use; None where the version has no such subresource."""
        own = self._additions.endpoints.get(subresource)
        if own is None:
            return self.scope(version, subresource)
        found = self._own_endpoints.get((version, subresource))
        if found is None:
            made = own.make(self.resource(version), subresource, lambda: self._main(version).store, self._admission)
            found = self._own_endpoints[version, subresource] = made
        return found

    def scope(self, version: str, subresource: str = "") -> ResourceScope | None:
        """The same for those with stored objects behind them."""
        if subresource in self._additions.endpoints:
            return None
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
        rendering = Rendering(self.versions, version, f"{self._id}/{version}")
        codec = self._codec(version)
        cache = self._storage.cache(self.key, self._codec(self.versions.storage))
        store = CustomStore(
            resource,
            strategy,
            cache,
            codec,
            self._storage.root,
            self.versions,
            rendering,
            self.served_since,
            self._storage.is_stale,
            self._storage.deleting,
            reads_newest=self._storage.reads_newest(resource.group_resource),
            clock=self._storage.monotonic,
        )
        return self._make_scope(resource, version, "", strategy, store, rendering)

    def _codec(self, version: str) -> CustomCodec:
        writes_form = self._storage.media is not MediaType.OWN_JSON
        return CustomCodec(self.versions, version, self._fields(), writes_form=writes_form)

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
            columns=self.columns(version),
            make_field_manager=lambda: self._field_manager(version, subresource),
            admission=self._admission,
            patch_types=PATCHES,
        )

    def columns(self, version: str) -> tuple[Column, ...]:
        """What tables show at a version."""
        found = self._columns.get(version)
        if found is None:
            found = self._columns[version] = self._make_columns(version)
        return found

    def _make_columns(self, version: str) -> tuple[Column, ...]:
        own = self._additions.columns.get(version)
        return table_columns(self._versions[version].get("additionalPrinterColumns")) if own is None else own

    def _strategy(self, version: str) -> CustomStrategy:
        declared = self._versions[version].get("subresources") or {}
        schema = self.versions.schemas[version]
        made = StatusfulStrategy if declared.get("status") is not None else CustomStrategy
        paths = self._selectable(version)
        return made(
            self.versions.gvk(version),
            schema,
            rules=self._rules[version] if version in self._rules else compile_rules(schema),
            scale_errors=scale_checker(declared["scale"]) if declared.get("scale") is not None else None,
            fields=self._fields(),
            selectable=frozenset(paths),
            namespaced=self.namespaced,
            gates=self._storage.gates,
            hooks=self._additions.hooks.get(version, NO_HOOKS),
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
        changed = len(self._versions) > 1 or self.crd["metadata"].get("generation", 1) > 1
        return FieldManager(
            self.shape(version),
            gvk,
            subresource=subresource,
            reset_fields=self._reset_fields(version, subresource),
            convert=self._convert_for_managers,
            ask=None if self.versions.converter is None else self._ask_for_managers,
            may_mismatch=changed or self.versions.schemas[version].node.has_formats,
            dropped=_DROPPED.get(subresource) if self._has_status(version) else None,
        )

    def _reset_fields(self, version: str, subresource: str) -> dict[str, FieldSet]:
        if subresource == "status":
            with_status = [name for name in self._versions if self._has_status(name)]
            return {f"{self.group}/{name}": from_paths(("f:metadata",), ("f:spec",)) for name in with_status}
        return {f"{self.group}/{version}": from_paths(("f:status",))} if self._has_status(version) else {}

    def _has_status(self, version: str) -> bool:
        return (self._versions[version].get("subresources") or {}).get("status") is not None

    def _known_version(self, obj: Object, old: str, new: str) -> str:
        """A version that managers can be followed in. Raises ``Unconvertible``."""
        group, _, version = new.rpartition("/")
        if group != self.group:
            kind = f"{old}, Kind={obj.get('kind', '')}"
            raise Unconvertible(f"{kind} is unstructured and is not suitable for converting to {quote(new)}")
        if version not in self._versions:
            # A version that is gone does not take its managers' claims with it: nobody can apply until they are reset.
            raise Unconvertible(f"request to convert CR to an invalid group/version: {new}")
        return version

    async def _ask_for_managers(self, obj: Object, old: str, new: str) -> tuple[Shape, Object]:
        version, converter = self._known_version(obj, old, new), self.versions.converter
        if converter is None or obj.keys() == {"kind", "apiVersion"}:
            return self._fitting(version, {**obj, "apiVersion": new})
        data = large_json.dumps(obj)
        copy: Object = await weighed(len(data), large_json.loads, data)
        try:
            converted = await converter.convert([copy], GroupVersion(self.group, version), len(data))
        except ConversionFailed as error:
            raise Unconvertible(error.message) from None
        return await weighed(converted.weight, self._fitting, version, converted.objects[0])

    def _convert_for_managers(self, obj: Object, old: str, new: str) -> tuple[Shape, Object]:
        version = self._known_version(obj, old, new)
        converted = {**obj, "apiVersion": new}
        if self.versions.conversion is not None:
            converted = self.versions.relabel(large_json.loads(orjson.dumps(obj)), version)
        return self._fitting(version, converted)

    def _fitting(self, version: str, converted: Object) -> tuple[Shape, Object]:
        """An object with the shape of its version. Raises ``Unconvertible`` where it does not fit that."""
        shape = self.shape(version)
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
