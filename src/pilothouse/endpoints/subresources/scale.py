"""The scale subresource of built-in workloads, the same for all kinds that can be scaled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.columns import AGE, name_cell
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Column, Doc, Object
from pilothouse.apis.validating import NEGATIVE
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.making import StoreOf, expected_kind
from pilothouse.endpoints.subresources.scale_store import ScaleStore, make_scale
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.machinery import errors, labels
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.field_manager.scale import REPLICAS, ReplicasPaths
from pilothouse.machinery.gvk import GroupKind, GroupResource
from pilothouse.registry.store.store import Store

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

    def __init__(self, parent: Store, shape: Shape) -> None:
        super().__init__(parent, shape.paths)
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


def make_scale_scope(resource: Resource, sub: Subresource | None, store_of: StoreOf) -> ResourceScope:
    """The scale endpoint of a built-in workload."""
    assert sub is not None
    kind, struct = sub.kind, types.struct("autoscaling.v1.Scale")
    store = WorkloadScaleStore(store_of(resource.group, resource.name), APPS if resource.group else CORE)
    return ResourceScope(
        resource=resource,
        subresource=sub.name,
        kind=kind,
        expected=expected_kind(resource, sub),
        verbs={"get": get, "update": update, "patch": patch},
        store=store,
        strategy=store.strategy,
        columns=COLUMNS,
        make_field_manager=lambda: FieldManager(struct, kind, subresource=sub.name),
    )
