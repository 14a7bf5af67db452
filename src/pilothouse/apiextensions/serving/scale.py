"""The scale subresource of custom resources: the definition says where replicas and selector are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from pilothouse.apiextensions.serving.columns import AGE, table_columns
from pilothouse.apiextensions.serving.strategies import ScaleErrors
from pilothouse.apis import types
from pilothouse.apis.resources import Resource
from pilothouse.endpoints.expected import Expected, interpret
from pilothouse.endpoints.schemes import CUSTOM_SCALES
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.subresources.scale_store import ScaleStore, make_scale
from pilothouse.endpoints.verbs.get import get
from pilothouse.endpoints.verbs.patch import patch
from pilothouse.endpoints.verbs.update import update
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.field_errors import INVALID, FieldError
from pilothouse.machinery.field_manager import FieldManager, named, set_entries
from pilothouse.machinery.field_manager.scale import ReplicasPaths
from pilothouse.machinery.go_quote import quote, show
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.registry.store.store import Store

SCALE: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_SCHEME: Final = "k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781"
_UNKNOWN: Final = f'no kind is registered for the type v1.Scale in scheme "{_SCHEME}"'
_UNSET: Final = -(1 << 31)
_MOST: Final = (1 << 31) - 1
_GO_TYPES: Final = {str: "string", bool: "bool", float: "float64", int: "int64", type(None): "<nil>"}
_GO_TYPES_OF_CONTAINERS: Final = {dict: "map[string]interface {}", list: "[]interface {}"}
_COLUMNS: Final = table_columns(
    [
        {
            "name": "Desired",
            "type": "integer",
            "description": "Number of desired replicas",
            "jsonPath": ".spec.replicas",
        },
        {
            "name": "Available",
            "type": "integer",
            "description": "Number of actual replicas",
            "jsonPath": ".status.replicas",
        },
        AGE,
    ]
)


class AccessError(ValueError):
    """A field on the way is of the wrong type. Worded as in kube-apiserver."""


def split(path: str) -> list[str]:
    """The names a simple path leads through."""
    return path.removeprefix(".").split(".")


def nested(obj: Any, path: list[str], wanted: type, go: str) -> Any:
    """The value at a path, None where there is none. Raises ``AccessError``."""
    value = obj
    for at, name in enumerate(path):
        if value is None:
            return None
        if value.__class__ is not dict:
            raise _access_error(path[: at + 1], value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    if value.__class__ is not wanted:
        raise _access_error(path, value, go)
    return value


def _access_error(path: list[str], value: Any, wanted: str) -> AccessError:
    go = _GO_TYPES.get(value.__class__) or _GO_TYPES_OF_CONTAINERS[value.__class__]
    return AccessError(f".{'.'.join(path)} accessor error: {show(value)} is of the type {go}, expected {wanted}")


def scale_checker(scale: Object) -> ScaleErrors:
    """The check of the fields that a scale is made of."""
    spec, status, selector = scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath")

    def check(obj: Object, only_status: bool) -> list[FieldError]:
        errs = [] if only_status else _replicas_errors(obj, spec)
        errs += _replicas_errors(obj, status)
        if selector:
            try:
                nested(obj, split(selector), str, "string")
            except AccessError as error:
                errs.append(FieldError(INVALID, selector, "", str(error)))
        return errs

    return check


def _replicas_errors(obj: Object, path: str) -> list[FieldError]:
    where = path  # with its leading dot, as the definition writes it
    try:
        replicas = nested(obj, split(path), int, "int64") or 0
    except AccessError as error:
        return [FieldError(INVALID, where, 0, str(error))]
    if replicas < 0:
        return [FieldError(INVALID, where, replicas, "should be a non-negative integer")]
    if replicas > _MOST:
        return [FieldError(INVALID, where, replicas, f"should be less than or equal to {_MOST}")]
    return []


class CustomScaleStore(ScaleStore):
    """Scales of a version's objects."""

    conditional = True

    def __init__(self, parent: Store, scale: Object, paths: ReplicasPaths) -> None:
        super().__init__(parent, paths)
        self._spec, self._status = split(scale["specReplicasPath"]), split(scale["statusReplicasPath"])
        self._selector = split(scale["labelSelectorPath"]) if scale.get("labelSelectorPath") else None
        self._shown = quote(scale["specReplicasPath"])

    def _read(self, parent: Object) -> tuple[Object, bool]:
        """The scale of an object, and whether the object says how many replicas it wants."""
        try:
            wanted = nested(parent, self._spec, int, "int64")
            have = nested(parent, self._status, int, "int64") or 0
            selector = nested(parent, self._selector, str, "string") if self._selector else ""
        except AccessError as error:
            raise errors.generic(str(error)) from None
        return make_scale(parent, wanted, have, selector), wanted is not None

    def scale_of(self, parent: Object) -> Object:
        return self._read(parent)[0]

    def scale_to_show(self, parent: Object) -> Object:
        scale, found = self._read(parent)
        if not found:
            raise errors.internal_error(f"the spec replicas field {self._shown} does not exist")
        return scale

    def scale_to_change(self, parent: Object) -> Object:
        scale, found = self._read(parent)
        if not found:
            scale["spec"]["replicas"] = _UNSET
        return scale

    def check(self, scale: Object, metadata: dict[str, Any]) -> None:
        if scale["spec"].get("replicas") == _UNSET:
            raise errors.bad_request(f"the spec replicas field {self._shown} cannot be empty")

    def with_replicas(self, parent: Object, replicas: int) -> Object:
        changed: Object = large_json.loads(orjson.dumps(parent))
        _set(changed, self._spec, replicas)
        return changed


def _set(obj: Object, path: list[str], value: Any) -> None:
    for at, name in enumerate(path[:-1]):
        below = obj.setdefault(name, {})
        if below.__class__ is not dict:
            raise errors.generic(
                f"value cannot be set because .{'.'.join(path[: at + 1])} is not a map[string]interface{{}}"
            )
        obj = below
    obj[path[-1]] = value


class ScaleBody(Expected):
    """A scale, and how kube-apiserver refuses anything else here."""

    __slots__ = ()

    def identify(self, value: Any, data: bytes, *, lenient: bool = False) -> GroupVersionKind:
        gvk = interpret(value, self, data)
        if gvk != self.gvk:
            raise self.unreadable(gvk, "")
        return gvk

    def unreadable(self, gvk: GroupVersionKind, why: str) -> errors.StatusError:
        return errors.bad_request(_UNKNOWN)

    def unrecognized(self, why: str, data: bytes) -> errors.StatusError:
        return errors.bad_request(_UNKNOWN)


class ScaleFieldManager(FieldManager):
    """kube-apiserver cannot convert scales of custom resources: an apply works as long as it changes nothing."""

    def apply(self, live: Object | None, patch: Object, manager: str, *, force: bool, now: str) -> Object:
        self.check_patch(patch)
        why = f"to proper version: request to convert CR to an invalid group/version: {self.version}"
        if live is None or not live["metadata"].get("managedFields"):
            at = f"failed to convert live object (/; {self.gvk})"
            raise errors.generic(f"failed to create manager for existing fields: {at} {why}")
        applied = super().apply(live, patch, manager, force=force, now=now)
        if set_entries(applied, []) != set_entries(live, []):
            raise errors.generic(f"failed to convert new object ({named(patch, self.gvk)}) {why}")
        return applied


def make_scale_scope(
    resource: Resource, main: ResourceScope, versions: Mapping[str, Object], version: str
) -> ResourceScope:
    """The scale endpoint of one version."""
    paths: dict[str, tuple[str, ...] | None] = {}
    for name, declared in versions.items():
        scale = (declared.get("subresources") or {}).get("scale")
        path = None if scale is None else tuple(f"f:{step}" for step in split(scale["specReplicasPath"]))
        paths[f"{resource.group}/{name}"] = path
    store = CustomScaleStore(main.store, versions[version]["subresources"]["scale"], paths)
    struct = types.struct("autoscaling.v1.Scale")
    return ResourceScope(
        resource=resource,
        subresource="scale",
        kind=SCALE,
        expected=ScaleBody(SCALE, struct, "v1", scheme=CUSTOM_SCALES),
        verbs={"get": get, "update": update, "patch": patch},
        formats=main.formats,
        deprecation=main.deprecation,
        store=store,
        strategy=store.strategy,
        columns=_COLUMNS,
        make_field_manager=lambda: ScaleFieldManager(struct, SCALE, subresource="scale"),
        admission=main.admission,
        patch_types=main.patch_types,
    )
