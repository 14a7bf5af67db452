"""From a declared kind to a definition with additions, which is what the code that serves custom resources takes.

What is wrong with a declaration is found by the checks that a CustomResourceDefinition goes through, before anything
is served.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from pilothouse.apiextensions.serving.additions import Additions, Conversion, OwnEndpoint
from pilothouse.apiextensions.serving.columns import table_columns
from pilothouse.apis.apiextensions.custom_resource_definition.defaults import set_defaults
from pilothouse.apis.apiextensions.custom_resource_definition.definitions import (
    APPROVED_ANNOTATION,
    ESTABLISHED,
    NAMES_ACCEPTED,
)
from pilothouse.apis.apiextensions.custom_resource_definition.validation import validate_definition
from pilothouse.apis.strategy import Column as TableColumn
from pilothouse.library.declarations import Column, Kind, Version
from pilothouse.library.main_server import Main
from pilothouse.library.schemas import schema_of
from pilothouse.library.version_hooks import VersionHooks
from pilothouse.machinery.objects import Object

_EPOCH: Final = "1970-01-01T00:00:00Z"


def definition_of(group: str, kind: Kind) -> Object:
    """The definition, established. Raises ``ValueError`` with everything that is wrong with the declaration."""
    plural = kind.plural or f"{kind.name.lower()}s"
    names: dict[str, Any] = {"plural": plural, "singular": kind.singular or kind.name.lower(), "kind": kind.name}
    names["listKind"] = f"{kind.name}List"
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    spec = {
        "group": group,
        "names": names,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [_version(kind, version) for version in kind.versions],
    }
    digest = hashlib.sha256(orjson.dumps(spec, default=str)).hexdigest()
    crd: Object = {
        "metadata": {
            "name": f"{plural}.{group}",
            "uid": digest,
            "resourceVersion": "0",
            "generation": 1,
            # What protects groups of Kubernetes is meant for definitions that clients create.
            "annotations": {APPROVED_ANNOTATION: "unapproved, declared in code"},
        },
        "spec": spec,
    }
    set_defaults(crd)
    conditions = [
        {"type": each, "status": "True", "reason": "Declared", "message": "", "lastTransitionTime": _EPOCH}
        for each in (NAMES_ACCEPTED, ESTABLISHED)
    ]
    stored = [storage_version(kind)]
    crd["status"] = {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored}
    if wrong := validate_definition(crd):
        raise ValueError(f"{kind.name} in {group}: " + "; ".join(map(str, wrong)))
    return crd


def storage_version(kind: Kind) -> str:
    """The version that objects are kept in."""
    return kind.storage_version or kind.versions[0].name


def _version(kind: Kind, version: Version) -> Object:
    made: Object = {
        "name": version.name,
        "served": version.served,
        "storage": version.name == storage_version(kind),
        "schema": {"openAPIV3Schema": schema_of(version.schema)},
    }
    if version.deprecation:
        made["deprecated"], made["deprecationWarning"] = True, version.deprecation
    if columns := [_printer_column(each) for each in kind.columns if isinstance(each.value, str)]:
        made["additionalPrinterColumns"] = columns
    if kind.selectable_fields:
        made["selectableFields"] = [{"jsonPath": path} for path in kind.selectable_fields]
    subresources: Object = {"status": {}} if kind.status else {}
    if kind.scale is not None:
        scale = {
            "specReplicasPath": kind.scale.spec_replicas,
            "statusReplicasPath": kind.scale.status_replicas,
            "labelSelectorPath": kind.scale.label_selector,
        }
        subresources["scale"] = {key: value for key, value in scale.items() if value}
    if subresources:
        made["subresources"] = subresources
    return made


def _printer_column(column: Column) -> Object:
    made = {"name": column.name, "type": column.type, "jsonPath": column.value, "description": column.description}
    return {**made, "priority": column.priority}


def additions_of(kind: Kind, main: Main | None) -> Additions:
    """What the kind's functions, which may ask the main API server, add to its definition."""
    stored = storage_version(kind)
    hooks = {each.name: VersionHooks(each, kind.strategy, stored=each.name == stored) for each in kind.versions}
    convert = _conversion(kind)
    endpoints: dict[str, OwnEndpoint] = {}
    for name, subresource in kind.subresources.items():
        endpoints[name] = subresource.endpoint(stored, convert, main)
    if kind.computed is not None:
        columns = _columns(kind) or table_columns(None)
        endpoints[""] = kind.computed.endpoint(stored, convert, columns, main)
    has_functions = any(not isinstance(each.value, str) for each in kind.columns)
    shown = {each.name: _columns(kind) for each in kind.versions} if has_functions else {}
    return Additions(convert=convert, hooks=hooks, columns=shown, endpoints=endpoints)


def _columns(kind: Kind) -> tuple[TableColumn, ...]:
    """The columns of a table, those by JSONPath made as definitions make them."""
    if not kind.columns:
        return ()
    name, *_ = table_columns(None)
    return (name, *(_column(each) for each in kind.columns))


def _column(column: Column) -> TableColumn:
    if isinstance(column.value, str):
        return table_columns([_printer_column(column)])[1]
    described = column.description or column.name
    return TableColumn(column.name, column.type, column.value, priority=column.priority, description=described)


def _conversion(kind: Kind) -> Conversion | None:
    versions, stored = {each.name: each for each in kind.versions}, storage_version(kind)
    if not any(each.to_storage or each.from_storage for each in kind.versions):
        return None

    def convert(obj: Object, old: str, new: str) -> Object:
        if old != stored and (to_storage := versions[old].to_storage) is not None:
            obj = to_storage(obj)
        if new != stored and (from_storage := versions[new].from_storage) is not None:
            obj = from_storage(obj)
        return obj

    return convert
