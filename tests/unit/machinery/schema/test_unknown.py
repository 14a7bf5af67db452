"""Naming what the schema does not know."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.unknown import unknown_fields


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({}, []),
        ({"spec": {"nodeName": "x"}}, []),
        ({"zzz": 1, "spec": {"yyy": 1}}, ["zzz", "spec.yyy"]),
        ({"spec": {"containers": [{"name": "a"}, {"imag": "x"}]}}, ["spec.containers[1].imag"]),
        ({"metadata": {"labels": {"anything": "x"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]}}, []),
        ({"spec": {"volumes": [{"name": "a", "emptyDir": {"x": {"y": 1}}}]}}, ["spec.volumes[0].emptyDir.x"]),
        ({"spec": 5, "status": [1]}, []),
        ({"Spec": {}}, ["Spec"]),
    ],
)
def test_paths(value: Any, paths: list[str]) -> None:
    assert list(unknown_fields(types.struct("core.v1.Pod"), value)) == paths
