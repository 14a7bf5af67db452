"""The objects that a binding hands to its policy: one by name, those a selector finds, or none at all.

A kind that nobody serves is a mistake of the policy, everything else that is wrong one of the binding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.resources import Resource, table
from pilothouse.machinery import labels
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind
from pilothouse.machinery.labels import SelectorError
from pilothouse.machinery.objects import Object
from pilothouse.machinery.workers import weighed
from pilothouse.storage.cacher import Entry


class Misconfigured(Exception):
    """A policy or a binding that cannot be used."""


class Source:
    """Where params of one kind are."""

    def __init__(self, objects: Objects, row: Resource) -> None:
        self._objects = objects
        self.row = row

    async def get(self, namespace: str, name: str) -> list[Object]:
        """The object of a name, if there is one."""
        objects = self._objects
        await objects.ready()
        entry = objects.entry(namespace, name)
        if entry is None:
            await objects.refresh()
            entry = objects.entry(namespace, name)
        return await self._read([] if entry is None else [entry])

    async def select(self, namespace: str, raw: dict[str, Any]) -> list[Object]:
        """The objects that a selector finds."""
        try:
            selector = labels.from_object(raw)
        except SelectorError as error:
            raise Misconfigured(str(error)) from None
        await self._objects.ready()
        found = await self._read(self._objects.entries(namespace))
        return [each for each in found if selector.matches(each["metadata"].get("labels") or {})]

    async def _read(self, entries: list[Entry]) -> list[Object]:
        return [_serve(self.row, each) for each in await self._objects.store.read_shared(entries)]


class CustomSource(Source):
    """Objects of a definition: each of its versions reads them differently, so nothing read is kept with them."""

    async def _read(self, entries: list[Entry]) -> list[Object]:
        store = self._objects.store
        if store.prepare is not None and entries:
            await store.prepare(entries)
        weight = sum(len(entry.data) for entry in entries)
        return await weighed(weight, lambda: [store.decode(entry) for entry in entries])


class Params:
    """Finds params."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def find_kind(self, kind: dict[str, str] | None) -> Source | None:
        """Where a policy's params are, None if it has none; raises Misconfigured."""
        if kind is None:
            return None
        group, _, version = kind.get("apiVersion", "").rpartition("/")
        wanted = GroupVersionKind(group, version, kind.get("kind", ""))
        row = _resource_of(wanted)
        if row is not None:
            return Source(self._environment.objects(row.group, row.version, row.name), row)
        definitions = self._environment.served.definitions
        definition = definitions.of_kind(wanted) if definitions is not None else None
        scope = definition.scope(version) if definition is not None else None
        if scope is None:
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{wanted}'")
        return CustomSource(Objects(scope.store), scope.resource)

    async def collect(self, source: Source | None, ref: dict[str, Any] | None, namespace: str) -> list[Object | None]:
        """The params of a binding, each to be judged with; None stands for params that nobody gave."""
        if source is None or ref is None:
            return [None]
        place = _namespace_of(source.row, ref.get("namespace") or "", namespace)
        if ref.get("name"):
            found = await source.get(place, ref["name"])
        elif ref.get("selector") is not None:
            found = await source.select(place, ref["selector"])
        else:
            raise Misconfigured("one of name or selector must be provided")
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [*found]


def _namespace_of(row: Resource, given: str, requested: str) -> str:
    if not row.namespaced:
        if given:
            raise Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not requested:
        raise Misconfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return given or requested


def _serve(row: Resource, obj: Object) -> Object:
    """An object as expressions see it: without managed fields, which kube-apiserver's informers do not keep."""
    _, from_hub = converters_for(row)
    if from_hub is not None:
        obj = from_hub(obj)
    metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": metadata, "kind": row.kind, "apiVersion": str(row.group_version)}


@lru_cache(maxsize=256)
def _resource_of(kind: GroupVersionKind) -> Resource | None:
    version = table().get(GroupVersion(kind.group, kind.version))
    if version is None:
        return None
    return next((row for row in version.resources if row.kind == kind.kind and row.is_stored), None)
