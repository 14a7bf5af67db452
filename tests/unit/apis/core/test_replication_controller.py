"""Replication controllers and pod templates."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.core.pod_template import PodTemplateStrategy
from pilothouse.apis.core.replication_controller import (
    ReplicationControllerStatusStrategy,
    ReplicationControllerStrategy,
)
from pilothouse.apis.strategy import Context
from pilothouse.machinery.schema.decoding import decode

Struct = dict[str, Any]
TEMPLATE: Struct = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}


def controller(spec: Struct) -> Struct:
    raw = {"metadata": {"name": "r", "namespace": "ns"}, "spec": spec}
    obj, _ = decode(types.struct("core.v1.ReplicationController"), copy.deepcopy(raw))
    ReplicationControllerStrategy().default(obj)
    ReplicationControllerStrategy().prepare_for_create(Context(), obj)
    return obj


def errors_of(spec: Struct) -> list[str]:
    return [str(error) for error in ReplicationControllerStrategy().validate(Context(), controller(spec))]


def test_labels_of_the_template_are_the_default_selector_and_labels() -> None:
    obj = controller({"template": TEMPLATE})
    assert obj["spec"]["selector"] == obj["metadata"]["labels"] == {"app": "a"}
    assert obj["spec"]["replicas"] == 1
    assert obj["status"] == {"replicas": 0}
    assert decode(types.struct("core.v1.ReplicationController"), obj)[0] == obj


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"template": TEMPLATE}, []),
        ({}, ["spec.selector: Required value", "spec.template: Required value"]),
        (
            {"template": TEMPLATE, "selector": {"x": "y"}},
            ['spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`'],
        ),
        (
            {"template": TEMPLATE, "replicas": -1, "minReadySeconds": -2},
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0",
            ],
        ),
        (
            {
                "template": {
                    **TEMPLATE,
                    "spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "activeDeadlineSeconds": 5},
                }
            },
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in"
                " ReplicationController is not"
                " Supported",
            ],
        ),
    ],
)
def test_errors(spec: Struct, wanted: list[str]) -> None:
    assert errors_of(spec) == wanted


def test_errors_of_a_status() -> None:
    old = controller({"template": TEMPLATE})
    obj = {**old, "status": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "observedGeneration": -1}}
    errs = ReplicationControllerStatusStrategy().validate_update(Context(), obj, old)
    assert [str(error) for error in errs] == [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
    ]


def test_columns() -> None:
    obj = controller({"template": TEMPLATE, "replicas": 2})
    cells = {column.name: column.cell(obj) for column in ReplicationControllerStrategy.columns if column.name != "Age"}
    assert cells == {
        "Name": "r",
        "Desired": 2,
        "Current": 0,
        "Ready": 0,
        "Containers": "c",
        "Images": "a:1",
        "Selector": "app=a",
    }


def test_pod_templates() -> None:
    raw = {"metadata": {"name": "t"}, "template": {"spec": {"containers": []}}}
    obj, _ = decode(types.struct("core.v1.PodTemplate"), raw)
    PodTemplateStrategy().default(obj)
    errs = PodTemplateStrategy().validate(Context(), obj)
    assert [str(error) for error in errs] == ["template.spec.containers: Required value"]
    assert [column.cell(obj) for column in PodTemplateStrategy.columns] == ["t", "", "", "<none>"]


def test_reports_without_labels_get_those_of_the_pods() -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    obj: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"template": template}, "status": {}}
    ReplicationControllerStatusStrategy().default(obj)
    assert obj["metadata"]["labels"] == {"app": "a"}
