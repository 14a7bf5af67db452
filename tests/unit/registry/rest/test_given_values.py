"""Refusals that show what the client gave as empty."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.emptied import note_always_written
from pilothouse.registry.rest.given_values import restate

DAEMON_SET = types.struct("apps.v1.DaemonSet")
LABELS = Path("spec", "template", "metadata", "labels")
CONTAINERS = Path("spec", "template", "spec", "containers")


@pytest.mark.parametrize(
    ("path", "value", "given", "shown"),
    [
        (LABELS, None, {"template": {"metadata": {"labels": {}}}}, "{}"),
        (LABELS, None, {"template": {"metadata": {}}}, "null"),
        (LABELS, {"a": "b"}, {"template": {"metadata": {"labels": {}}}}, '{"a":"b"}'),
        (Path("spec"), None, {}, "null"),
        (CONTAINERS, None, {"template": {"spec": {"containers": []}}}, "[]"),
        (CONTAINERS.index(0).child("args"), None, {"template": {"spec": {"containers": [{"args": []}]}}}, "[]"),
        (CONTAINERS.index(1).child("args"), None, {"template": {"spec": {"containers": [{"args": []}]}}}, "null"),
        (CONTAINERS.key("x").child("args"), None, {"template": {"spec": {"containers": [{"args": []}]}}}, "null"),
        (Path("spec", "template"), None, {"template": {"metadata": {"labels": {}}}}, "null"),
    ],
)
def test_empty_lists_and_maps_show_as_given(path: Path, value: Any, given: Any, shown: str) -> None:
    errors = [invalid(path, value, "is wrong")]
    obj = decode(DAEMON_SET, {"spec": given}, noting=True)[0]
    note_always_written(DAEMON_SET, obj)
    restate(errors, obj)
    assert str(errors[0]) == f"{path}: Invalid value: {shown}: is wrong"
