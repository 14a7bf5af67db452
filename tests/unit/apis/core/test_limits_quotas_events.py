"""LimitRanges, ResourceQuotas and core Events."""

from __future__ import annotations

from typing import Any

import pytest


def limit(**fields: Any) -> dict[str, Any]:
    return {"spec": {"limits": [{"type": "Container", **fields}]}}


def test_container_limits_default_each_other(kind: Any) -> None:
    given = limit(max={"cpu": "2", "memory": "1Gi"}, min={"cpu": "1", "memory": "1Mi"}, default={"memory": "512Mi"})
    [made] = kind("v1", "limitranges").create(given)["spec"]["limits"]
    assert made["default"] == {"cpu": "2", "memory": "512Mi"}
    assert made["defaultRequest"] == {"cpu": "2", "memory": "512Mi"}


def test_a_limit_range_gets_a_name(kind: Any) -> None:
    made = kind("v1", "limitranges").create({"metadata": {}, "spec": {"limits": []}})
    assert len(made["metadata"]["name"]) == 36
    assert made["spec"] == {"limits": None}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (
            {"max": {"cpu": "1"}, "min": {"cpu": "2"}},
            [
                'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                'spec.limits[0].defaultRequest[cpu]: Invalid value: "1": '
                "min value 2 is greater than default request value 1",
                'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
            ],
        ),
        (
            {"type": "Odd"},
            ['spec.limits[0].type: Invalid value: "Odd": must be a standard limit type or fully qualified'],
        ),
        (
            {"type": "Pod", "default": {"cpu": "1"}},
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            {"type": "PersistentVolumeClaim"},
            [
                "spec.limits[0].limits: Required value: "
                "either minimum or maximum storage value is required, but neither was provided"
            ],
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "500m"}},
            ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            {"max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "3"}},
            [
                'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
                "ratio 3 is greater than max/min = 2.000000"
            ],
        ),
        (
            {"default": {"a.b/gpu": "2"}, "defaultRequest": {"a.b/gpu": "1"}},
            [
                'spec.limits[0].defaultRequest[a.b/gpu]: Invalid value: "1": '
                "default value 2 must equal to defaultRequest value 1 in a.b/gpu"
            ],
        ),
        ({"max": {"odd": "1"}}, 3),
    ],
)
def test_limit_range_faults(kind: Any, fields: dict[str, Any], wanted: Any) -> None:
    found = kind("v1", "limitranges").faults(limit(**fields))
    if isinstance(wanted, int):
        assert len({fault.partition(":")[0] for fault in found}) == wanted
    else:
        assert found == wanted


def quota(hard: dict[str, str], **fields: Any) -> dict[str, Any]:
    return {"spec": {"hard": hard, **fields}}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (quota({"pods": "-1"}), ['spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0']),
        (quota({"pods": "1500m"}), ['spec.hard[pods]: Invalid value: "1500m": must be an integer']),
        (
            quota({"storage": "1"}),
            ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
        ),
        (quota({"count/widgets.example.com": "1", "requests.nvidia.com/gpu": "1"}), []),
        (
            quota({"pods": "1"}, scopes=["BestEffort", "NotBestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
        ),
        (
            quota({"cpu": "1"}, scopes=["BestEffort"]),
            ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
        ),
        (
            quota({}, scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]}),
            [
                "spec.scopeSelector.matchExpressions.values: Required value: "
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
    ],
)
def test_quota_faults(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind("v1", "resourcequotas").faults(body) == wanted


def test_quota_rows_and_warnings(kind: Any) -> None:
    quotas = kind("v1", "resourcequotas")
    stored = quotas.create(quota({"requests.cpu": "2", "limits.cpu": "1"}))
    assert quotas.warnings == ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"]
    used = {"hard": {"pods": "2", "limits.cpu": "1", "cpu": "3"}, "used": {"pods": "1"}}
    reported = quotas.update(stored, {"status": used}, "status")
    assert quotas.row(reported)[1:3] == ["cpu: 0/3, pods: 1/2", "limits.cpu: 0/1"]
    changed = quotas.faults({"spec": {"scopes": ["Terminating"]}}, stored)
    assert changed == ['spec.scopes: Invalid value: ["Terminating"]: field is immutable']


def test_old_and_new_events(kind: Any) -> None:
    events = kind("v1", "events")
    assert events.faults({"involvedObject": {"namespace": "ns"}}) == []
    mismatch = 'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    assert events.faults({"involvedObject": {"namespace": "other"}}) == [mismatch]
    found = events.faults({"involvedObject": {"namespace": "ns"}, "eventTime": "2026-01-01T00:00:00.000000Z"})
    assert [fault.partition(":")[0] for fault in found] == [
        "reportingComponent", "reportingComponent", "reportingComponent", "reportingInstance", "action", "reason",
    ]  # fmt: skip


def test_event_rows_and_fields(kind: Any) -> None:
    events = kind("v1", "events")
    made = events.create(
        {
            "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "fieldPath": "spec"},
            "source": {"component": "kubelet", "host": "n1"},
            "message": " hello\n",
            "type": "Normal",
            "reason": "R",
        }
    )
    row = events.row(made)
    assert row == ["<unknown>", "Normal", "R", "pod/p", "spec", "kubelet, n1", "hello", "<unknown>", 1, "a"]
    fields = events.strategy.fields(made)
    assert (fields["involvedObject.kind"], fields["source"]) == ("Pod", "kubelet")
    assert set(fields) == events.strategy.field_labels
