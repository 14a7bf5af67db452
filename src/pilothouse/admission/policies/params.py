"""The objects that a binding hands to its policy: one by name, those a selector finds, or none at all.

A kind that nobody serves is a mistake of the policy, everything else that is wrong one of the binding.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pilothouse.admission.environment import Environment
from pilothouse.admission.objects import Objects
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.resources import Resource, table
from pilothouse.machinery import labels
from pilothouse.machinery.gvk import GroupVersion, GroupVersionKind
from pilothouse.machinery.labels import SelectorError

Object = dict[str, Any]


class UnknownKind(Exception):
    """A kind of params that is not served."""


class ParamError(Exception):
    """Params that cannot be used."""


class Params:
    """Finds params."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def find_kind(self, kind: dict[str, str] | None) -> Resource | None:
        """The resource of a policy's params, None if it has none; raises UnknownKind."""
        if kind is None:
            return None
        group, _, version = kind.get("apiVersion", "").rpartition("/")
        wanted = GroupVersionKind(group, version, kind.get("kind", ""))
        found = _resource_of(wanted)
        if found is None:
            raise UnknownKind(f"failed to find resource referenced by paramKind: '{wanted}'")
        return found

    async def collect(self, row: Resource | None, ref: dict[str, Any] | None, namespace: str) -> list[Object | None]:
        """The params of a binding, each to be judged with; None stands for params that nobody gave."""
        if row is None or ref is None:
            return [None]
        place = _namespace_of(row, ref.get("namespace") or "", namespace)
        objects = self._environment.objects(row.group, row.version, row.name)
        await objects.ready()
        if ref.get("name"):
            one = await objects.find(place, ref["name"])
            found = [] if one is None else [one]
        elif ref.get("selector") is not None:
            found = _select(objects, place, ref["selector"])
        else:
            raise ParamError("one of name or selector must be provided")
        if not found and ref.get("parameterNotFoundAction") == "Deny":
            raise ParamError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [_serve(row, each) for each in found]


def _namespace_of(row: Resource, given: str, requested: str) -> str:
    if not row.namespaced:
        if given:
            raise ParamError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not requested:
        raise ParamError("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    return given or requested


def _select(objects: Objects, namespace: str, raw: dict[str, Any]) -> list[Object]:
    try:
        selector = labels.from_object(raw)
    except SelectorError as error:
        raise ParamError(str(error)) from None
    return [each for each in objects.list(namespace) if selector.matches(each["metadata"].get("labels") or {})]


def _serve(row: Resource, obj: Object) -> Object:
    _, from_hub = converters_for(row)
    if from_hub is not None:
        obj = from_hub(obj)
    return {**obj, "kind": row.kind, "apiVersion": str(row.group_version)}


@cache
def _resource_of(kind: GroupVersionKind) -> Resource | None:
    version = table().get(GroupVersion(kind.group, kind.version))
    if version is None:
        return None
    return next((row for row in version.resources if row.kind == kind.kind and row.is_stored), None)
