import copy

import orjson
import pytest

from pilothouse.apis import types
from pilothouse.apis.autoscaling.conversion import to_v1, to_v2
from pilothouse.apis.autoscaling.index import STRATEGIES
from pilothouse.apis.strategy import Context, Object
from pilothouse.machinery.schema.decoding import decode

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
V2 = types.struct("autoscaling.v2.HorizontalPodAutoscaler")
strategy = STRATEGIES["horizontalpodautoscalers"]()


def made(spec: Object, status: Object | None = None) -> Object:
    body = {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3, **spec}, "status": status or {}}
    obj = decode(V2, body)[0]
    strategy.default(obj)
    assert decode(V2, obj)[0] == obj
    again = copy.deepcopy(obj)
    strategy.default(again)
    assert again == obj
    return obj


def resource(**target: object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", **target}}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"maxReplicas": 0},
            [
                "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
                "spec.maxReplicas: Required value",
            ],
        ),
        (
            {"minReplicas": -1, "maxReplicas": -1},
            [
                "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
            ],
        ),
        (
            {"minReplicas": 0},
            [
                "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to "
                "zero replicas"
            ],
        ),
        (
            {"scaleTargetRef": {"kind": "Deployment", "name": "a/b", "apiVersion": "v1"}},
            [
                "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
                'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
            ],
        ),
        ({"scaleTargetRef": {"kind": "ReplicationController", "name": "r", "apiVersion": "v1"}}, []),
        (
            {"metrics": [{"type": "Pods", "resource": {"name": "cpu", "target": {}}}]},
            [
                "spec.metrics[0].resource.target.type: Required value: must specify a metric target type",
                'spec.metrics[0].resource.target.type: Invalid value: "": must be either Utilization, Value, or '
                "AverageValue",
                "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a "
                "target raw value or a target utilization",
                "spec.metrics[0].pods: Required value: must populate information for the given metric source",
            ],
        ),
        (
            {
                "metrics": [
                    {
                        **resource(averageUtilization=5),
                        "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}},
                    }
                ]
            },
            ["spec.metrics[0].external: Forbidden: must populate the given metric source only"],
        ),
        (
            {"behavior": {"scaleUp": {"policies": [{"type": "X", "value": 0, "periodSeconds": 2000}]}}},
            [
                'spec.behavior.scaleUp.policies[0].type: Unsupported value: "X": supported values: "Percent", "Pods"',
                "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
                "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 2000: "
                "must be less than or equal to 1800",
            ],
        ),
    ],
)
def test_errors(spec: Object, expected: list[str]) -> None:
    assert [str(error) for error in strategy.validate(Context(), made(spec))] == expected


def test_a_reference_that_was_wrong_may_stay() -> None:
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "v1"}}
    assert strategy.validate(Context(), made(spec))
    assert strategy.validate_update(Context(), made({**spec, "maxReplicas": 9}), made(spec)) == []


def test_both_directions_get_rules_when_one_has_some() -> None:
    behavior = made({"behavior": {"scaleDown": {"selectPolicy": "Min"}}})["spec"]["behavior"]
    assert behavior["scaleDown"] == {
        "selectPolicy": "Min",
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
    }
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert [policy["type"] for policy in behavior["scaleUp"]["policies"]] == ["Pods", "Percent"]


METRICS = [
    {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
            "metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "2"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "3"}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "c",
            "target": {"type": "AverageValue", "averageValue": "4"},
        },
    },
    resource(averageUtilization=60),
]
STATUS = {
    "currentReplicas": 2,
    "desiredReplicas": 3,
    "currentMetrics": [
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "1"}}},
        {"type": "Pods", "pods": {"metric": {"name": "m"}, "current": {"averageValue": "5"}}},
    ],
    "conditions": [{"type": "AbleToScale", "status": "True", "reason": "R"}],
}


def test_v1_carries_everything_in_annotations_and_back() -> None:
    hub = made({"metrics": METRICS, "behavior": {"scaleUp": {"selectPolicy": "Min"}}}, STATUS)
    v1 = to_v1(copy.deepcopy(hub))
    assert v1["spec"]["targetCPUUtilizationPercentage"] == 60
    assert v1["status"]["currentCPUUtilizationPercentage"] == 7
    assert set(v1["metadata"]["annotations"]) == {
        f"autoscaling.alpha.kubernetes.io/{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
    }
    assert to_v2(v1) == hub


def test_annotations_hold_json_as_the_original_writes_it() -> None:
    hub = made({"metrics": METRICS[:1], "behavior": {}})
    annotations = to_v1(hub)["metadata"]["annotations"]
    assert annotations["autoscaling.alpha.kubernetes.io/metrics"] == (
        '[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1"}}]'
    )
    target = {"type": "Value", "value": "2"}
    described = {"describedObject": {"apiVersion": "a/v1", "kind": "K", "name": "n"}, "metric": {"name": "m"}}
    hub = made({"metrics": [{"type": "Object", "object": {**described, "target": target}}], "behavior": {}})
    assert to_v1(hub)["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] == (
        '[{"type":"Object","object":{"target":{"kind":"K","name":"n","apiVersion":"a/v1"},"metricName":"m",'
        '"targetValue":"2"}}]'
    )
    behavior = orjson.loads(annotations["autoscaling.alpha.kubernetes.io/behavior"])
    assert behavior["ScaleDown"]["StabilizationWindowSeconds"] is None
    assert behavior["ScaleUp"]["Policies"][0] == {"Type": "Pods", "Value": 4, "PeriodSeconds": 15}


@pytest.mark.parametrize("text", ["{", "[1]", '[{"type": 3}]', "7", '{"a": 1}'])
def test_annotations_that_do_not_decode_are_ignored(text: str) -> None:
    names = ("metrics", "current-metrics", "conditions", "behavior")
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in names}
    body = {"metadata": {"annotations": annotations}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 1}}
    hub = to_v2(decode(types.struct("autoscaling.v1.HorizontalPodAutoscaler"), body)[0])
    assert hub["spec"]["metrics"][-1] == resource(averageUtilization=80)
    assert "annotations" not in hub["metadata"]


def test_targets_show_two_metrics_and_count_the_rest() -> None:
    obj = made({"metrics": METRICS}, {"currentMetrics": STATUS["currentMetrics"][1:]})
    [cell] = [column.cell(obj) for column in strategy.columns if column.name == "Targets"]
    assert cell == "5/1, <unknown>/2 (avg) + 3 more..."
