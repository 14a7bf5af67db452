from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.apis.apps.controller_revision import ControllerRevisionStrategy
from pilothouse.apis.apps.daemon_set import TEMPLATE_GENERATION, DaemonSetStatusStrategy, DaemonSetStrategy
from pilothouse.apis.apps.replica_set import ReplicaSetStatusStrategy, ReplicaSetStrategy
from pilothouse.apis.apps.stateful_set import StatefulSetStatusStrategy, StatefulSetStrategy
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.raw import written_anew

Make = Callable[..., dict[str, Any]]
CTX = Context()
STRATEGIES: dict[str, Strategy] = {
    "ReplicaSet": ReplicaSetStrategy(),
    "DaemonSet": DaemonSetStrategy(),
    "StatefulSet": StatefulSetStrategy(),
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_a_plain_workload_is_valid_and_decodes_to_itself(make: Make, kind: str) -> None:
    strategy = STRATEGIES[kind]
    obj = make(kind, strategy)
    strategy.prepare_for_create(CTX, obj)
    assert strategy.validate(CTX, obj) == []
    again, _ = decode(types.struct(f"apps.v1.{kind}"), obj)
    strategy.default(again)
    assert again == obj
    assert len([column.cell(obj) for column in strategy.columns]) == len(strategy.columns)


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (
            "ReplicaSet",
            {"minReadySeconds": -1},
            ["spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            "DaemonSet",
            {"selector": {"matchLabels": None}},
            ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
        ),
        (
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}},
            [
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is "
                "non-zero"
            ],
        ),
        (
            "DaemonSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
        ),
        (
            "DaemonSet",
            {"updateStrategy": {"type": "Surge"}},
            [
                'spec.updateStrategy: Unsupported value: {"Type":"Surge","RollingUpdate":null}: supported values: '
                '"RollingUpdate", "OnDelete"'
            ],
        ),
        (
            "DaemonSet",
            {"updateStrategy": {"type": "Surge", "rollingUpdate": {"maxSurge": ""}}},
            [
                'spec.updateStrategy: Unsupported value: {"Type":"Surge","RollingUpdate":{"MaxUnavailable":0,'
                '"MaxSurge":""}}: supported values: "RollingUpdate", "OnDelete"'
            ],
        ),
        ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}, []),
        (
            "StatefulSet",
            {"podManagementPolicy": "Random", "ordinals": {"start": -1}},
            [
                "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'",
                "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "StatefulSet",
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}},
            [
                'spec.updateStrategy.rollingUpdate: Invalid value: {"Partition":0,"MaxUnavailable":null}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            ],
        ),
        (
            "StatefulSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "0%", "partition": -3}}},
            [
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -3: must be greater than or equal to 0",
                'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": cannot be 0',
            ],
        ),
        (
            "StatefulSet",
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
            [
                'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: '
                '"Retain", "Delete"'
            ],
        ),
        (
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]},
            [
                "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required",
                "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
            ],
        ),
    ],
)
def test_validation(make: Make, kind: str, spec: dict[str, Any], expected: list[str]) -> None:
    strategy = STRATEGIES[kind]
    assert [str(e) for e in strategy.validate(CTX, make(kind, strategy, spec=spec))] == expected


CLAIMS = [
    {
        "metadata": {"name": "d"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
]


def test_containers_may_mount_claim_templates(make: Make) -> None:
    strategy = STRATEGIES["StatefulSet"]
    container = {"name": "c", "image": "x", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}
    template = {"spec": {"containers": [container], "hostname": "Not_Valid"}}
    obj = make("StatefulSet", strategy, spec={"volumeClaimTemplates": CLAIMS, "template": template})
    assert strategy.validate(CTX, obj) == []
    assert obj["spec"]["volumeClaimTemplates"][0]["status"] == {"phase": "Pending"}
    assert obj["spec"]["volumeClaimTemplates"][0]["kind"] == "PersistentVolumeClaim"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 5, "minReadySeconds": 3}, []),
        ({"serviceName": "t"}, ['spec.serviceName: Invalid value: "t": field is immutable']),
        (
            {"podManagementPolicy": "Parallel"},
            ['spec.podManagementPolicy: Invalid value: "Parallel": field is immutable'],
        ),
        (
            {"podManagementPolicy": "<"},
            [
                "spec.podManagementPolicy: Invalid value: \"\\u003c\": must be 'OrderedReady' or 'Parallel'",
                'spec.podManagementPolicy: Invalid value: "\\u003c": field is immutable',
            ],
        ),
        ({"volumeClaimTemplates": None}, ["spec.volumeClaimTemplates: Invalid value: null: field is immutable"]),
    ],
)
def test_what_stays_fixed_in_stateful_sets(make: Make, spec: dict[str, Any], expected: list[str]) -> None:
    strategy = STRATEGIES["StatefulSet"]
    old = make("StatefulSet", strategy, spec={"volumeClaimTemplates": CLAIMS})
    new = make("StatefulSet", strategy, spec={"volumeClaimTemplates": CLAIMS, **spec})
    assert [str(e) for e in strategy.validate_update(CTX, new, old)] == expected


def test_a_stateful_set_that_was_invalid_already_may_keep_its_template(make: Make) -> None:
    strategy = STRATEGIES["StatefulSet"]
    broken = {"template": {"spec": {"containers": [{"name": "Bad Name", "image": "x"}]}}}
    old, new = make("StatefulSet", strategy, spec=broken), make("StatefulSet", strategy, spec={**broken, "replicas": 2})
    assert strategy.validate_update(CTX, new, make("StatefulSet", strategy)) != []
    assert strategy.validate_update(CTX, new, old) == []


def test_template_generation_is_counted_by_the_server_alone(make: Make) -> None:
    strategy = STRATEGIES["DaemonSet"]

    def count(obj: dict[str, Any]) -> str:
        value: str = obj["metadata"]["annotations"][TEMPLATE_GENERATION]
        return value

    old = make("DaemonSet", strategy)
    assert count(old) == "0"
    strategy.prepare_for_create(CTX, old)
    assert count(old) == "1"
    same = make("DaemonSet", strategy, metadata={"annotations": {TEMPLATE_GENERATION: "77"}})
    strategy.prepare_for_update(CTX, same, old)
    assert count(same) == "1"
    changed = make("DaemonSet", strategy, spec={"template": {"spec": {"hostNetwork": True}}})
    strategy.prepare_for_update(CTX, changed, old)
    assert count(changed) == "2"
    report = make("DaemonSet", strategy, metadata={"annotations": {TEMPLATE_GENERATION: "5"}})
    DaemonSetStatusStrategy().prepare_for_update(CTX, report, changed)
    assert count(report) == "2"
    with pytest.raises(StatusError, match="invalid syntax"):
        make("DaemonSet", strategy, metadata={"annotations": {TEMPLATE_GENERATION: "one"}})


@pytest.mark.parametrize(
    ("kind", "strategy", "status", "expected"),
    [
        (
            "ReplicaSet",
            ReplicaSetStatusStrategy(),
            {"replicas": 1, "fullyLabeledReplicas": 2, "availableReplicas": 1},
            [
                "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas",
            ],
        ),
        (
            "StatefulSet",
            StatefulSetStatusStrategy(),
            {"replicas": 1, "currentReplicas": 2, "availableReplicas": 1, "collisionCount": -1},
            [
                "status.collisionCount: Invalid value: -1: must be greater than or equal to 0",
                "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas",
            ],
        ),
        (
            "DaemonSet",
            DaemonSetStatusStrategy(),
            {"numberReady": -1},
            ["status.numberReady: Invalid value: -1: must be greater than or equal to 0"],
        ),
    ],
)
def test_status(make: Make, kind: str, strategy: Strategy, status: dict[str, Any], expected: list[str]) -> None:
    old, new = make(kind, STRATEGIES[kind]), make(kind, STRATEGIES[kind], status=status)
    assert [str(e) for e in strategy.validate_update(CTX, new, old)] == expected


def test_negative_history_is_only_warned_about(make: Make) -> None:
    strategy = STRATEGIES["StatefulSet"]
    obj = make("StatefulSet", strategy, spec={"revisionHistoryLimit": -2})
    assert strategy.validate(CTX, obj) == []
    (warning,) = strategy.warnings_on_create(CTX, obj)
    assert warning.startswith("spec.revisionHistoryLimit: a negative value retains all historical revisions")


@pytest.mark.parametrize(
    ("data", "revision", "expected"),
    [
        ({"a": 1}, 1, []),
        (None, 1, ["data: Required value: data is mandatory"]),
        ([1], 1, ["data: Required value: data must be a valid JSON object"]),
        ({}, -1, ["revision: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)
def test_controller_revisions(data: Any, revision: int, expected: list[str]) -> None:
    obj = {"metadata": {}, "data": data, "revision": revision}
    assert [str(e) for e in ControllerRevisionStrategy().validate(CTX, obj)] == expected


def test_the_data_of_a_controller_revision_never_changes() -> None:
    old = {"metadata": {}, "data": {"b": 1, "a": [2]}, "revision": 1}
    strategy = ControllerRevisionStrategy()
    assert strategy.validate_update(CTX, {**old, "data": {"a": [2], "b": 1}, "revision": 2}, old) == []
    (error,) = strategy.validate_update(CTX, {**old, "data": {"a": [2]}}, old)
    assert str(error) == 'data: Invalid value: {"a":[2]}: field is immutable'


def test_the_controller_of_a_revision_is_shown() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}
    cell = ControllerRevisionStrategy.columns[1].cell
    assert cell({"metadata": {"ownerReferences": [owner]}}) == "daemonset.apps/d"
    assert cell({"metadata": {}}) == "<none>"


def test_a_rolling_update_that_is_not_used_counts_nothing(make: Make) -> None:
    spec = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {}}}
    obj = make("DaemonSet", STRATEGIES["DaemonSet"], spec=spec)
    assert obj["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 0}


def test_what_the_controller_sees_as_metadata_has_no_template_generation() -> None:
    assert DaemonSetStatusStrategy.hidden_annotations == DaemonSetStrategy.hidden_annotations


def test_refused_data_shows_as_it_would_be_written() -> None:
    old = {"metadata": {}, "data": {"b": 1}}
    obj = {"metadata": {}, "data": {"b": 1, "a": 2}}
    ctx = Context(raw_texts=written_anew((("data",),))(obj, {}))
    errs = ControllerRevisionStrategy().validate_update(ctx, obj, old)
    assert [str(error) for error in errs] == ['data: Invalid value: {"a":2,"b":1}: field is immutable']
