"""Objects in the version that a webhook or a policy wants to see, and back."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.webhooks.matching import Wanted, row_of
from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for
from pilothouse.apis.strategies import strategy_for
from pilothouse.endpoints.admission import Attributes
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors
from pilothouse.machinery.schema.decoding import DecodeError, decode

Object = dict[str, Any]


def to_version(attributes: Attributes, wanted: Wanted, obj: Object | None) -> Object | None:
    """A hub object as it is wanted, with kind and apiVersion."""
    if obj is None:
        return None
    kind = wanted.kind
    scope = attributes.scope
    if wanted.kind == attributes.kind and isinstance(scope, ResourceScope):
        return scope.served_object(obj)
    row = row_of(wanted.resource)
    if row is not None and row.gvk == kind:
        _, from_hub = converters_for(row)
        if from_hub is not None:
            obj = from_hub(obj)
    return {**obj, "kind": kind.kind, "apiVersion": str(kind.group_version)}


def from_version(attributes: Attributes, wanted: Wanted, value: Any) -> Object:
    """A changed object back in the hub version, decoded and defaulted; raises the 500 for what is no such object."""
    scope = attributes.scope
    if isinstance(scope, ResourceScope) and wanted.kind == attributes.kind:
        try:
            obj, _ = scope.expected.decode(value)
        except DecodeError as error:
            raise errors.internal_error(str(error)) from None
        for field in ("kind", "apiVersion"):
            if isinstance(value, dict) and field in value:
                obj.setdefault(field, value[field])
        obj = scope.hub_object(obj)
        scope.store.strategy.default(obj)
        return obj
    return _decode_other(wanted, value)


def _decode_other(wanted: Wanted, value: Any) -> Object:
    row, struct = row_of(wanted.resource), types.find_kind(wanted.kind)
    if struct is None:
        if not isinstance(value, dict):
            raise errors.internal_error("the patched object is no object")
        return value
    try:
        obj, _ = decode(struct, value)
    except DecodeError as error:
        raise errors.internal_error(str(error)) from None
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    if row is not None and row.gvk == wanted.kind:
        to_hub, _ = converters_for(row)
        obj = to_hub(obj) if to_hub is not None else obj
        strategy_for(row).default(obj)
    return obj
