"""Whatever decodes as a pod is judged without surprises.

Pods are drawn from the schema. Defaulting twice changes nothing more; what creation leaves is what would be read back;
updates never touch the stored object; every error has a text.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.apis.core.pod.strategy import (
    PodEphemeralContainersStrategy,
    PodResizeStrategy,
    PodStatusStrategy,
    PodStrategy,
)
from pilothouse.apis.core.pod_template import PodTemplateStrategy
from pilothouse.apis.core.replication_controller import ReplicationControllerStrategy
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Special, Struct, Type

TEXTS = [
    "", "a", "b", "Always", "Never", "cpu", "memory", "hugepages-2Mi", "x/y", "TCP", "Localhost", "../a", "/abs",
    "10.0.0.1", "::1", "In", "Exists", "linux", "windows", "a" * 70, "é\n", "metadata.name", "v1", "nginx:1",
    "RestartContainer", "localhost/x",
]  # fmt: skip
SPECIALS: dict[str, list[Any]] = {
    "Quantity": ["1", "0", "-1", "1Gi", "100m", "1n", "2Mi", "1.5"],
    "IntOrString": [0, 80, -1, "http", "", 70000],
    "Time": [None, "2024-01-01T00:00:00Z"],
}
NUMBERS = [0, 1, -1, 5, 80, 70000, 2**31 - 1]


def _draw(draw: Any, node: Type, depth: int) -> Any:
    if isinstance(node, Struct):
        likely = 9 if depth < 2 else 4 if depth < 4 else 1
        names = [name for name in node.fields if name not in ("kind", "apiVersion")]
        chosen = [name for name in names if depth < 8 and draw(st.integers(0, 9)) < likely]
        return {name: _draw(draw, node.fields[name].type, depth + 1) for name in chosen}
    if isinstance(node, ListOf):
        return [_draw(draw, node.item, depth + 1) for _ in range(draw(st.integers(0, 2)))]
    if isinstance(node, MapOf):
        return {
            draw(st.sampled_from(TEXTS)): _draw(draw, node.value, depth + 1) for _ in range(draw(st.integers(0, 2)))
        }
    if isinstance(node, Scalar):
        if node.kind == "string":
            return draw(st.sampled_from(TEXTS))
        return draw(st.booleans()) if node.kind == "bool" else draw(st.sampled_from(NUMBERS))
    return draw(st.sampled_from(SPECIALS.get(node.kind, [{}]))) if isinstance(node, Special) else None


@st.composite
def objects(draw: Any, name: str) -> dict[str, Any]:
    raw = _draw(draw, types.struct(name), 0)
    raw["metadata"] = {"name": "n", "namespace": "ns"}
    try:
        made, _ = decode(types.struct(name), raw)
    except DecodeError:
        made, _ = decode(types.struct(name), {"metadata": raw["metadata"]})
    return made


KINDS: list[tuple[str, type[Strategy]]] = [
    ("core.v1.Pod", PodStrategy),
    ("core.v1.PodTemplate", PodTemplateStrategy),
    ("core.v1.ReplicationController", ReplicationControllerStrategy),
]


@pytest.mark.parametrize(("name", "strategy"), KINDS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_creation(name: str, strategy: type[Strategy], data: Any) -> None:
    obj = data.draw(objects(name))
    strategy().default(obj)
    once = copy.deepcopy(obj)
    strategy().default(obj)
    assert obj == once
    strategy().prepare_for_create(Context(now="2024-01-01T00:00:00Z"), obj)
    assert all(map(str, strategy().validate(Context(), obj)))
    assert all(strategy().warnings_on_create(Context(), obj))
    assert decode(types.struct(name), obj)[0] == obj
    strategy().fields(obj)
    assert all(column.cell(obj) is not None for column in strategy.columns)


UPDATERS: list[tuple[str, type[Strategy]]] = [
    *KINDS,
    ("core.v1.Pod", PodStatusStrategy),
    ("core.v1.Pod", PodEphemeralContainersStrategy),
    ("core.v1.Pod", PodResizeStrategy),
]


@pytest.mark.parametrize(("name", "strategy"), UPDATERS)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_updates(name: str, strategy: type[Strategy], data: Any) -> None:
    old = data.draw(objects(name))
    obj = copy.deepcopy(old) if data.draw(st.booleans()) else data.draw(objects(name))
    strategy().default(old)
    strategy().default(obj)
    before = copy.deepcopy(old)
    strategy().prepare_for_update(Context(now="2024-01-01T00:00:00Z"), obj, old)
    assert all(map(str, strategy().validate_update(Context(), obj, old)))
    strategy().warnings_on_update(Context(), obj, old)
    assert old == before
