"""The scale subresource of built-in workloads, the same for all kinds that can be scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.columns import AGE, name_cell
from pilothouse.apis.deprecations import deprecation_of
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Column, Doc
from pilothouse.apis.validation import NEGATIVE
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.endpoints import StoreOf, expected_kind
from pilothouse.endpoints.subresources.scale_store import ScaleStore, make_scale
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.machinery import errors, labels
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.field_manager.scale import REPLICAS, ReplicasPaths
from pilothouse.machinery.field_manager.tracking import Convert
from pilothouse.machinery.gvk import GroupKind, GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.structured.ownership import MissingVersion
from pilothouse.registry.store.store import Store

_SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_CORE_WORKLOAD: Final = "replicationcontrollers"
SelectorText = Callable[[Object], str]
_META: Final = "meta.v1.ObjectMeta"
COLUMNS: Final = (
    Column("Name", "string", name_cell, description=Doc(_META, "name")),
    Column(
        "Desired",
        "integer",
        lambda obj: obj["spec"].get("replicas", 0),
        description=Doc("autoscaling.v1.ScaleSpec", "replicas"),
    ),
    Column(
        "Available",
        "integer",
        lambda obj: obj["status"].get("replicas", 0),
        description=Doc("autoscaling.v1.ScaleStatus", "replicas"),
    ),
    AGE,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How scales of one kind are made."""

    selector_of: SelectorText
    """The pods' selector as text. Raises ``SelectorError``."""
    paths: ReplicasPaths
    """Where replicas are, in every version of the kind that may own fields."""


class WorkloadScaleStore(ScaleStore):
    """Scales of workloads that keep their replicas and selector in the usual places."""

    def __init__(self, parent: Store, shape: Shape, version: str) -> None:
        super().__init__(parent, shape.paths, version)
        self._selector_of = shape.selector_of

    def scale_of(self, parent: Object) -> Object:
        try:
            selector = self._selector_of(parent)
        except labels.SelectorError as error:
            raise errors.bad_request(str(error)) from None
        have = (parent.get("status") or {}).get("replicas", 0)
        return make_scale(parent, parent["spec"].get("replicas"), have, selector)

    def check(self, scale: Object, metadata: dict[str, Any]) -> None:
        replicas = scale["spec"].get("replicas", 0)
        if replicas < 0:
            errs = [invalid(Path("spec", "replicas"), replicas, NEGATIVE)]
            raise errors.invalid(GroupKind("autoscaling", "Scale"), metadata["name"], errs)
        uid = scale["metadata"].get("uid")
        if uid and uid != metadata.get("uid"):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata.get('uid', '')}"
            where = GroupResource(self.resource.group, f"{self.resource.name}/scale")
            raise errors.conflict(where, metadata["name"], why)

    def with_replicas(self, parent: Object, replicas: int) -> Object:
        return {**parent, "spec": {**parent["spec"], "replicas": replicas}}


def _label_selector(parent: Object) -> str:
    return str(labels.from_object(parent["spec"].get("selector")))


def _map_selector(parent: Object) -> str:
    return str(labels.from_labels(parent["spec"].get("selector") or {}))


APPS: Final = Shape(
    _label_selector, dict.fromkeys(("apps/v1beta1", "apps/v1beta2", "apps/v1", "extensions/v1beta1"), REPLICAS)
)
CORE: Final = Shape(_map_selector, {"v1": REPLICAS})


def make_scale_scope(
    resource: Resource, sub: Subresource | None, store_of: StoreOf, admission: Admission | None
) -> ResourceScope:
    """The scale endpoint of a built-in workload."""
    assert sub is not None
    kind, expected = sub.kind, expected_kind(resource, sub)
    core = resource.name == _CORE_WORKLOAD
    parent = store_of("" if core else resource.group, resource.name)
    store = WorkloadScaleStore(parent, CORE if core else APPS, "v1" if core else str(resource.group_version))
    to_hub, from_hub, between = _conversions(kind)
    return ResourceScope(
        resource=resource,
        subresource=sub.name,
        kind=kind,
        expected=expected,
        verbs={"get": get, "update": update, "patch": patch},
        to_hub=to_hub,
        from_hub=from_hub,
        deprecation=deprecation_of(resource, sub),
        store=store,
        strategy=store.strategy,
        columns=COLUMNS,
        admission=admission,
        make_field_manager=lambda: FieldManager(expected.struct, kind, subresource=sub.name, convert=between),
    )


def _conversions(
    own: GroupVersionKind,
) -> tuple[Callable[[Object], Object] | None, Callable[[Object], Object] | None, Convert | None]:
    """To and from autoscaling/v1, and between both for those who own fields; None where scales are of that version."""
    if own == _SCALE:
        return None, None, None
    from pilothouse.apis.legacy.scale import from_scale, to_scale

    versions = {str(kind.group_version): kind for kind in (own, _SCALE)}

    def between(obj: dict[str, Any], old: str, new: str) -> tuple[Struct, dict[str, Any]]:
        if new not in versions:
            raise MissingVersion(new)
        shown = obj if old == new else to_scale(obj) if versions[new] == _SCALE else from_scale(obj)
        return types.struct_of(new, "Scale"), {**shown, "kind": "Scale", "apiVersion": new}

    return to_scale, from_scale, between
