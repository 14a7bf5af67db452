"""What was given as empty counts in lists that are owned as a whole, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema import decoding
from pilothouse.machinery.structured.atoms import as_compared
from pilothouse.machinery.structured.shapes import shape_of


@pytest.mark.parametrize(
    ("kind", "given", "compared"),
    [
        pytest.param(
            "rbac.v1.ClusterRole",
            {"rules": [{"verbs": ["get"], "resourceNames": []}]},
            {"rules": [{"verbs": ["get"], "resourceNames": []}]},
            id="an atomic list",
        ),
        pytest.param("core.v1.ConfigMap", {"data": {}}, {}, id="a map"),
        pytest.param(
            "core.v1.PodSpec",
            {"containers": [{"name": "c", "env": [], "command": []}]},
            {"containers": [{"name": "c", "resources": {}}]},
            id="a list with keys",
        ),
        pytest.param(
            "core.v1.PersistentVolumeClaimSpec",
            {"selector": {"matchExpressions": [], "matchLabels": {}}},
            {"selector": {}, "resources": {}},
            id="an atomic struct",
        ),
        pytest.param(
            "core.v1.PersistentVolumeClaimSpec",
            {"selector": {"matchExpressions": [{"key": "k", "operator": "Exists", "values": []}]}},
            {
                "selector": {"matchExpressions": [{"key": "k", "operator": "Exists", "values": []}]},
                "resources": {},
            },
            id="a list in an atomic struct",
        ),
    ],
)
def test_as_compared(kind: str, given: dict[str, Any], compared: dict[str, Any]) -> None:
    struct = types.struct(kind)
    decoded, _ = decoding.decode(struct, given, noting=True)
    made = as_compared(shape_of(struct), decoded)
    assert {name: value for name, value in made.items() if name != "metadata"} == compared
