"""Whatever decodes as a pod is judged without surprises.

Pods are drawn from the schema. Defaulting twice changes nothing more; what creation leaves is what would be read back;
updates never touch the stored object; every error has a text.
"""

from __future__ import annotations

import copy
import random
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
from pilothouse.machinery.schema.decoding import decode
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


def _draw(chance: random.Random, node: Type, depth: int) -> Any:
    if isinstance(node, Struct):
        likely = 0.9 if depth < 2 else 0.4 if depth < 4 else 0.1
        names = [name for name in node.fields if name not in ("kind", "apiVersion")]
        chosen = [name for name in names if depth < 8 and chance.random() < likely]
        return {name: _draw(chance, node.fields[name].type, depth + 1) for name in chosen}
    if isinstance(node, ListOf):
        return [_draw(chance, node.item, depth + 1) for _ in range(chance.randint(0, 2))]
    if isinstance(node, MapOf):
        return {chance.choice(TEXTS): _draw(chance, node.value, depth + 1) for _ in range(chance.randint(0, 2))}
    if isinstance(node, Scalar):
        if node.kind == "string":
            return chance.choice(TEXTS)
        return chance.random() < 0.5 if node.kind == "bool" else chance.choice(NUMBERS)
    return copy.deepcopy(chance.choice(SPECIALS.get(node.kind, [{}]))) if isinstance(node, Special) else None


def objects(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Made of a number each: drawing thousands of values one by one takes ten times as long as what is tested."""
    return st.integers(0, 2**32).map(lambda seed: _object(name, random.Random(seed)))


def _object(name: str, chance: random.Random) -> dict[str, Any]:
    raw = _draw(chance, types.struct(name), 0)
    raw["metadata"] = {"name": "n", "namespace": "ns"}
    return decode(types.struct(name), raw)[0]


KINDS: list[tuple[str, type[Strategy]]] = [
    ("core.v1.Pod", PodStrategy),
    ("core.v1.PodTemplate", PodTemplateStrategy),
    ("core.v1.ReplicationController", ReplicationControllerStrategy),
]


@pytest.mark.parametrize(("name", "strategy"), KINDS)
@settings(suppress_health_check=list(HealthCheck))
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
@settings(suppress_health_check=list(HealthCheck))
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
