"""The scale subresource: how many replicas a workload wants and has, the same for all kinds that can be scaled.

A ``Scale`` is a view of its parent. The store below shows scales instead of parents, so that the ordinary verbs serve
them; a write goes

    parent → scale → (patch, field management, admission) → scale → checked → parent → the parent's own update

with the parent's resourceVersion and uid as preconditions, and ownership of ``replicas`` translated both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.apis import types
from pilothouse.apis.columns import AGE, name_cell
from pilothouse.apis.resources import Resource, Subresource
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.apis.validating import NEGATIVE
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.making import StoreOf, expected_kind
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.machinery import errors, labels
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.field_manager.scale import REPLICAS, ReplicasPaths, to_parent, to_scale
from pilothouse.machinery.gvk import GroupKind, GroupResource
from pilothouse.registry.store.store import Admit, Change, Store
from pilothouse.storage.cacher import Entry

SelectorText = Callable[[Object], str]
_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
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


def scale_of(parent: Object, shape: Shape) -> Object:
    """The scale of a workload."""
    try:
        selector = shape.selector_of(parent)
    except labels.SelectorError as error:
        raise errors.bad_request(str(error)) from None
    metadata = {key: parent["metadata"][key] for key in _KEPT if key in parent["metadata"]}
    replicas = parent["spec"].get("replicas", 0)
    status: Object = {"replicas": (parent.get("status") or {}).get("replicas", 0)}
    if selector:
        status["selector"] = selector
    return {"metadata": metadata, "spec": {"replicas": replicas} if replicas else {}, "status": status}


class ScaleStore(Store):
    """Shows the scales of another store's objects, and changes these through their scales."""

    def __init__(self, parent: Store, shape: Shape) -> None:
        super().__init__(parent.resource, Strategy(), parent.cache, parent.codec, "")
        self.prefix = parent.prefix
        self._parent = parent
        self._shape = shape

    async def get(self, namespace: str, name: str, version: str = "") -> Entry:
        return self._entry(await self._parent.get(namespace, name, version))

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Change,
        admit: Admit | None = None,
        *,
        strategy: Strategy | None = None,
        create: bool | None = None,
        admit_create: Admit | None = None,
    ) -> tuple[Entry, bool]:
        """Change a parent's replicas; nothing is ever created."""

        async def change_parent(parent: Object | None) -> Object:
            assert parent is not None
            return await self._changed(parent, change)

        async def admit_scale(parent: Object, old: Object | None) -> None:
            if admit is not None:
                before = None if old is None else scale_of(old, self._shape)
                await admit(scale_of(parent, self._shape), before)

        entry, _ = await self._parent.update(ctx, name, change_parent, admit_scale, create=False)
        return self._entry(entry), False

    async def _changed(self, parent: Object, change: Change) -> Object:
        shape, metadata = self._shape, parent["metadata"]
        old = scale_of(parent, shape)
        entries = to_scale(metadata.get("managedFields"), shape.paths)
        if entries:
            old["metadata"]["managedFields"] = entries
        scale = await change(old)
        self._check(scale, metadata)
        wanted = {key: value for key, value in metadata.items() if key not in ("resourceVersion", "managedFields")}
        if scale["metadata"].get("resourceVersion"):
            wanted["resourceVersion"] = scale["metadata"]["resourceVersion"]
        version = str(self.resource.group_version)
        owners = scale["metadata"].get("managedFields")
        owned = to_parent(metadata.get("managedFields"), owners, version, shape.paths)
        if owned:
            wanted["managedFields"] = owned
        spec = {**parent["spec"], "replicas": scale["spec"].get("replicas", 0)}
        return {**parent, "metadata": wanted, "spec": spec}

    def _check(self, scale: Object, metadata: dict[str, Any]) -> None:
        replicas = scale["spec"].get("replicas", 0)
        if replicas < 0:
            errs = [invalid(Path("spec", "replicas"), replicas, NEGATIVE)]
            raise errors.invalid(GroupKind("autoscaling", "Scale"), metadata["name"], errs)
        uid = scale["metadata"].get("uid")
        if uid and uid != metadata.get("uid"):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata.get('uid', '')}"
            where = GroupResource(self.resource.group, f"{self.resource.name}/scale")
            raise errors.conflict(where, metadata["name"], why)

    def _entry(self, entry: Entry) -> Entry:
        scale = scale_of(orjson.loads(entry.data), self._shape)
        return Entry(entry.key, orjson.dumps(scale), entry.revision, entry.namespace, entry.name)


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
    store = ScaleStore(store_of(resource.group, resource.name), APPS if resource.group else CORE)
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
