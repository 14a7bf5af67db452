"""Objects arranged as their types declare them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.ordering import arrange, below

SPEC = types.struct("autoscaling.v2.HorizontalPodAutoscalerSpec")


@pytest.mark.parametrize(
    ("value", "arranged"),
    [
        (
            {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
            b'{"scaleTargetRef":{"kind":"Deployment","name":"d","apiVersion":"apps/v1"},"maxReplicas":3}',
        ),
        (
            {"metrics": [{"resource": {"name": "cpu"}, "type": "Resource"}]},
            b'{"metrics":[{"type":"Resource","resource":{"name":"cpu"}}]}',
        ),
        ({"unheardOf": 1, "maxReplicas": "no number"}, b'{"maxReplicas":"no number","unheardOf":1}'),
    ],
)
def test_fields_come_in_declared_order(value: Any, arranged: bytes) -> None:
    assert orjson.dumps(arrange(SPEC, value)) == arranged


def test_maps_are_sorted() -> None:
    meta = types.struct("meta.v1.ObjectMeta")
    shown = orjson.dumps(arrange(meta, {"labels": {"b": "1", "a": "2"}, "name": "n"}))
    assert shown == b'{"name":"n","labels":{"a":"2","b":"1"}}'


def test_what_the_schema_does_not_know_has_no_type() -> None:
    assert below(SPEC, "unheardOf") is None
    assert below(None, "x") is None
    metrics = below(SPEC, "metrics")
    assert below(metrics, "0") is types.struct("autoscaling.v2.MetricSpec")
