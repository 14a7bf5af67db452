"""Storage classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pilothouse.apis.columns import AGE, NAME, name_cell
from pilothouse.apis.deprecated_labels import topology_warnings
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.storage.columns import doc
from pilothouse.apis.storage.formats import ROOT, validate_parameters, well_formed_key
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.apis.validation import one_of
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, required
from pilothouse.machinery.objects import Object

_KEPT_OF_CLASS = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
STORAGE_CLASS_COLUMNS = (
    NAME,
    Column("Provisioner", "string", lambda o: o.get("provisioner", ""), description=doc("StorageClass", "provisioner")),
    Column(
        "ReclaimPolicy",
        "string",
        lambda o: o.get("reclaimPolicy", "Delete"),
        description=doc("StorageClass", "reclaimPolicy"),
    ),
    Column(
        "VolumeBindingMode",
        "string",
        lambda o: o.get("volumeBindingMode", "Immediate"),
        description=doc("StorageClass", "volumeBindingMode"),
    ),
    Column(
        "AllowVolumeExpansion",
        "string",
        lambda o: o.get("allowVolumeExpansion", False),
        description=doc("StorageClass", "allowVolumeExpansion"),
    ),
    AGE,
)
_DEFAULT_MARKS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def validate_storage_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a storage class; all but expansion, options and topologies is kept for good."""
    found = ErrorList()
    errs = found.errors
    provisioner = obj.get("provisioner", "")
    if provisioner:
        well_formed_key(provisioner.lower(), Path("provisioner"), errs)
    else:
        found.declared.append(required(Path("provisioner")))
    validate_parameters(obj.get("parameters") or {}, errs)
    if obj.get("reclaimPolicy"):
        one_of(obj["reclaimPolicy"], ("Delete", "Retain"), ROOT, "reclaimPolicy", errs)
    if obj.get("volumeBindingMode") is None:
        errs.append(required(Path("volumeBindingMode")))
    else:
        one_of(obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"), ROOT, "volumeBindingMode", errs)
    _validate_topologies(obj.get("allowedTopologies") or (), errs)
    if old is not None:
        for name in _KEPT_OF_CLASS:
            found.keep_declared(Path(name), obj.get(name), old.get(name))
    return found.listed()


def _validate_topologies(terms: Any, errs: list[FieldError]) -> None:
    seen: set[frozenset[tuple[str, frozenset[str]]]] = set()
    for position, term in enumerate(terms):
        path = Path("allowedTopologies").index(position).child("matchLabelExpressions")
        expressions: dict[str, frozenset[str]] = {}
        for at, expression in enumerate(term.get("matchLabelExpressions") or ()):
            where = path.index(at)
            key, values = expression.get("key", ""), expression.get("values") or ()
            _validate_values(values, where.child("values"), errs)
            well_formed_key(key, where.child("key"), errs)
            if key in expressions:
                errs.append(duplicate(where.child("key"), key))
            expressions[key] = frozenset(values)
        # An empty term equals the unset places kube-apiserver compares with, once for each term given.
        together = frozenset(expressions.items())
        if together in seen or not together:
            errs.append(duplicate(path, ""))
        seen.add(together)


def _validate_values(values: Any, path: Path, errs: list[FieldError]) -> None:
    if not values:
        errs.append(required(path))
    seen: set[str] = set()
    for at, value in enumerate(values):
        if value in seen:
            errs.append(duplicate(path.index(at), value))
        seen.add(value)


def storage_class_list(objs: Iterable[Object]) -> tuple[Column, ...]:
    """Columns that mark which of these classes claims get by default: the newest, and the first by name of several."""
    default: Object = {}
    for metadata in (obj["metadata"] for obj in objs):
        annotations = metadata.get("annotations") or {}
        if not any(annotations.get(mark) == "true" for mark in _DEFAULT_MARKS):
            continue
        born, other = metadata.get("creationTimestamp", ""), default.get("creationTimestamp", "")
        if not default or born > other or (born == other and metadata["name"] < default["name"]):
            default = metadata
    if not default:
        return STORAGE_CLASS_COLUMNS
    chosen = default["name"]

    def cell(obj: Object) -> str:
        name = name_cell(obj)
        return f"{name} (default)" if name == chosen else name

    return (replace(NAME, cell=cell), *STORAGE_CLASS_COLUMNS[1:])


class StorageClassStrategy(Strategy):
    """Storage classes."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    list_columns = staticmethod(storage_class_list)
    columns = STORAGE_CLASS_COLUMNS

    def default(self, obj: Object) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_storage_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_storage_class(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return topology_warnings(obj.get("allowedTopologies"))

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return topology_warnings(obj.get("allowedTopologies"))
