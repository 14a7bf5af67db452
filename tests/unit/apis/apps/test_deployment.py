from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.apps.deployment import ROLLBACK, DeploymentStatusStrategy, DeploymentStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.schema.decoding import decode

Make = Callable[..., dict[str, Any]]
STRATEGY = DeploymentStrategy()
CTX = Context()
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)


def errors_of(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    errs = STRATEGY.validate(CTX, obj) if old is None else STRATEGY.validate_update(CTX, obj, old)
    return [str(e) for e in errs]


def test_defaults(make: Make) -> None:
    spec = make("Deployment", STRATEGY)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


def test_defaults_are_idempotent_and_what_a_body_decodes_to(make: Make) -> None:
    obj = make("Deployment", STRATEGY, spec={"replicas": 0, "strategy": {"type": "Recreate"}})
    assert obj["spec"]["replicas"] == 0
    assert "rollingUpdate" not in obj["spec"]["strategy"]
    again, _ = decode(types.struct("apps.v1.Deployment"), obj)
    STRATEGY.default(again)
    assert again == obj


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"replicas": -1}, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (
            {"selector": None},
            [
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template '
                "`labels`",
            ],
        ),
        (
            {"selector": {"matchLabels": None}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
        ),
        (
            {"selector": {"matchExpressions": [{"values": ["a"], "operator": "Is", "key": "app"}]}},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
                "spec.selector: Invalid value: "
                '{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"app","operator":"Is",'
                '"values":["a"]}]}: invalid label selector',
            ],
        ),
        (
            {"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 5}}},
            [
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not "
                "Supported",
            ],
        ),
        (
            {"strategy": {"type": "BlueGreen", "rollingUpdate": {}}},
            [
                "spec.strategy: Unsupported value: "
                '{"Type":"BlueGreen","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":0}}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
        ),
        (
            {"strategy": {"type": "BlueGreen", "rollingUpdate": {"maxSurge": ""}}},
            [
                "spec.strategy: Unsupported value: "
                '{"Type":"BlueGreen","RollingUpdate":{"MaxUnavailable":0,"MaxSurge":""}}: '
                'supported values: "Recreate", "RollingUpdate"'
            ],
        ),
        (
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}},
            ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
        ),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "&", "maxUnavailable": "<"}}},
            [
                f'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "\\u003c": {PERCENT}',
                f'spec.strategy.rollingUpdate.maxSurge: Invalid value: "\\u0026": {PERCENT}',
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "\\u003c": '
                "may not be 0 when `maxSurge` is 0",
            ],
        ),
        (
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5, "revisionHistoryLimit": -2},
            [
                "spec.revisionHistoryLimit: Invalid value: -2: must be greater than or equal to 0",
                "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
            ],
        ),
    ],
)
def test_validation(make: Make, spec: dict[str, Any], expected: list[str]) -> None:
    assert errors_of(make("Deployment", STRATEGY, spec=spec)) == expected


def test_the_selector_never_changes(make: Make) -> None:
    old = make("Deployment", STRATEGY)
    new = make("Deployment", STRATEGY, spec={"selector": {"matchLabels": {"b": "c"}}})
    new["spec"]["template"]["metadata"]["labels"]["b"] = "c"
    assert errors_of(new, old) == [
        'spec.selector: Invalid value: {"matchLabels":{"app":"a","b":"c"}}: field is immutable'
    ]


def test_an_annotation_counts_as_a_change_and_a_label_does_not(make: Make) -> None:
    old = make("Deployment", STRATEGY)
    for metadata, generation in (({"annotations": {"a": "b"}}, 2), ({"labels": {"a": "b"}}, 1)):
        new = make("Deployment", STRATEGY, metadata=metadata)
        STRATEGY.prepare_for_update(CTX, new, old)
        assert new["metadata"]["generation"] == generation


def test_users_do_not_write_the_status(make: Make) -> None:
    new = make("Deployment", STRATEGY, status={"replicas": 3})
    STRATEGY.prepare_for_update(CTX, new, make("Deployment", STRATEGY, status={"replicas": 1}))
    assert new["status"] == {"replicas": 1}
    STRATEGY.prepare_for_create(CTX, new)
    assert new["status"] == {}


@pytest.mark.parametrize(("given", "kept"), [("7", {ROLLBACK: "7"}), ("+07", {ROLLBACK: "7"}), ("", None)])
def test_rollback_annotation(make: Make, given: str, kept: dict[str, str] | None) -> None:
    obj = make("Deployment", STRATEGY, metadata={"annotations": {ROLLBACK: given}})
    assert obj["metadata"].get("annotations") == kept


def test_a_rollback_that_is_no_number_is_refused(make: Make) -> None:
    with pytest.raises(StatusError, match=r"as int64: strconv.ParseInt: parsing \"x\": invalid syntax") as refused:
        make("Deployment", STRATEGY, metadata={"annotations": {ROLLBACK: "x"}})
    assert refused.value.code == 400
    obj = make("Deployment", STRATEGY, metadata={"annotations": {ROLLBACK: "-1"}})
    assert errors_of(obj) == ["spec.rollback.version: Invalid value: -1: must be greater than or equal to 0"]


def test_status_writes_keep_spec_labels_and_rollback(make: Make) -> None:
    strategy = DeploymentStatusStrategy()
    old = make("Deployment", STRATEGY, metadata={"labels": {"a": "b"}, "annotations": {ROLLBACK: "3"}})
    new = make("Deployment", STRATEGY, spec={"replicas": 9}, metadata={"labels": {"x": "y"}}, status={"replicas": 2})
    strategy.prepare_for_update(CTX, new, old)
    assert new["spec"] == old["spec"]
    assert new["metadata"]["labels"] == {"a": "b"}
    assert new["metadata"]["annotations"] == {ROLLBACK: "3"}
    assert new["status"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3, "collisionCount": 2}, []),
        (
            {"replicas": -1, "collisionCount": 1},
            [
                "status.replicas: Invalid value: -1: must be greater than or equal to 0",
                "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
            ],
        ),
        (
            {"replicas": 2, "availableReplicas": 2, "readyReplicas": 1},
            [
                "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
                "status.collisionCount: Invalid value: 0: cannot be decremented",
            ],
        ),
    ],
)
def test_status_validation(make: Make, status: dict[str, Any], expected: list[str]) -> None:
    old = make("Deployment", STRATEGY, status={"collisionCount": 1})
    new = make("Deployment", STRATEGY, status=status)
    assert [str(e) for e in DeploymentStatusStrategy().validate_update(CTX, new, old)] == expected


def test_names_that_are_no_labels_are_warned_about(make: Make) -> None:
    (warning,) = STRATEGY.warnings_on_create(CTX, make("Deployment", STRATEGY, metadata={"name": "a.b"}))
    assert warning.startswith("metadata.name: this is used in Pod names and hostnames, which can result in surprising")
    assert warning.endswith("a DNS label is recommended: [must not contain dots]")
    assert STRATEGY.warnings_on_create(CTX, make("Deployment", STRATEGY)) == []


def test_columns(make: Make) -> None:
    status = {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 2}
    obj = make("Deployment", STRATEGY, spec={"replicas": 3}, status=status)
    cells = {column.name: column.cell(obj) for column in STRATEGY.columns}
    del cells["Age"]
    assert cells == {
        "Name": "w",
        "Ready": "2/3",
        "Up-to-date": 1,
        "Available": 2,
        "Containers": "c",
        "Images": "x:1",
        "Selector": "app=a",
    }
