"""Nulls of custom resources: gone from bodies, kept in what an apply gives."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apiextensions.serving.body import CustomBody
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.endpoints.negotiation import NO_PROTOBUF
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema.types import Struct

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "nullable": True}}}
BODY = CustomBody(
    GroupVersionKind("example.com", "v1", "Box"),
    Struct("Box", list, go="Box"),
    "",
    formats=NO_PROTOBUF,
    schemas={"v1": ObjectSchema({"type": "object", "properties": {"spec": SCHEMA}})},
)


@pytest.mark.parametrize(("applied", "spec"), [(False, {"b": None}), (True, {"a": None, "b": None})])
def test_nulls(applied: bool, spec: dict[str, Any]) -> None:
    value = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "x"}, "spec": {"a": None, "b": None}}
    obj, unknown = BODY.decode(value, applied=applied)
    assert obj["spec"] == spec
    assert unknown is None
