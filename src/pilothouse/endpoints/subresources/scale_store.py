"""Scales as views of their parents: how many replicas a workload wants and has.

The store below shows scales instead of parents, so that the ordinary verbs serve them; a write goes

    parent → scale → (patch, field management, admission) → scale → checked → parent → the parent's own update

with the parent's resourceVersion as precondition, and ownership of ``replicas`` translated both ways. Where replicas
and selector are is the business of the two kinds of parents: built-in workloads and custom resources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

import orjson

from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.field_manager.scale import ReplicasPaths, to_parent, to_scale
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.registry.store.store import Change, Store, ValidatingAdmission
from pilothouse.storage.backends.contract import Foreseen
from pilothouse.storage.cacher import Entry

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def make_scale(parent: Object, wanted: int | None, have: int, selector: str) -> Object:
    """The scale of an object."""
    metadata = {key: parent["metadata"][key] for key in _KEPT if key in parent["metadata"]}
    status: Object = {"replicas": have}
    if selector:
        status["selector"] = selector
    return {"metadata": metadata, "spec": {"replicas": wanted} if wanted else {}, "status": status}


class ScaleStore(Store, ABC):
    """Shows the scales of another store's objects, and changes these through their scales."""

    conditional: ClassVar[bool] = False
    """Whether a write without a resourceVersion is refused if the parent changed meanwhile."""

    def __init__(self, parent: Store, paths: ReplicasPaths, version: str = "") -> None:
        """``version`` is what owners of replicas are noted under, that of the parent unless told."""
        super().__init__(parent.resource, Strategy(), parent.cache, parent.codec, parent.root)
        self._parent = parent
        self._paths = paths
        self._version = version or str(parent.resource.group_version)

    @abstractmethod
    def scale_of(self, parent: Object) -> Object:
        """The scale of an object."""

    def scale_to_show(self, parent: Object) -> Object:
        """The scale that a read answers with."""
        return self.scale_of(parent)

    def scale_to_change(self, parent: Object) -> Object:
        """The scale that a write starts from."""
        return self.scale_of(parent)

    def check(self, scale: Object, metadata: dict[str, Any]) -> None:
        """Refuse a scale that the parent, of which this is the metadata, cannot have."""

    @abstractmethod
    def with_replicas(self, parent: Object, replicas: int) -> Object:
        """The parent with other replicas; the one given stays as it is."""

    async def get(self, namespace: str, name: str, version: str = "", foreseen: Foreseen | None = None) -> Entry:
        entry = await self._parent.get(namespace, name, version, foreseen)
        return _entry(entry, self.scale_to_show(await self._parent.read(entry)))

    async def update(
        self,
        ctx: Context,
        name: str,
        change: Change,
        validate: ValidatingAdmission | None = None,
        *,
        strategy: Strategy | None = None,
        create: bool | None = None,
        authorize_and_validate_create: ValidatingAdmission | None = None,
    ) -> tuple[Entry, bool]:
        """Change a parent's replicas; nothing is ever created."""

        async def change_parent(parent: Object | None) -> Object:
            assert parent is not None
            return await self._changed(parent, change, ctx.weight)

        async def validate_scale(parent: Object, old: Object | None) -> None:
            if validate is not None:
                await validate(self.scale_of(parent), None if old is None else self.scale_of(old))

        entry, _ = await self._parent.update(ctx, name, change_parent, validate_scale, create=False)
        return _entry(entry, self.scale_of(await self._parent.read(entry))), False

    async def _changed(self, parent: Object, change: Change, weight: int) -> Object:
        metadata = parent["metadata"]
        old = self.scale_to_change(parent)
        entries = await weighed(weight, to_scale, metadata.get("managedFields"), self._paths)
        if entries:
            old["metadata"]["managedFields"] = entries
        scale = await change(old)
        self.check(scale, metadata)
        wanted = dict(metadata)
        version = scale["metadata"].get("resourceVersion")
        if version:
            wanted["resourceVersion"] = version
        elif not self.conditional:
            wanted.pop("resourceVersion", None)
        owners = scale["metadata"].get("managedFields")
        owned = await weighed(weight, to_parent, metadata.get("managedFields"), owners, self._version, self._paths)
        if owned:
            wanted["managedFields"] = owned
        else:
            wanted.pop("managedFields", None)
        return self.with_replicas({**parent, "metadata": wanted}, scale["spec"].get("replicas", 0))


def _entry(entry: Entry, scale: Object) -> Entry:
    return Entry(entry.key, orjson.dumps(scale), entry.revision, entry.namespace, entry.name)
