"""Resource quotas."""

from __future__ import annotations

from typing import Any

import pytest


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
def test_quota_errors(kind: Any, body: dict[str, Any], wanted: list[str]) -> None:
    assert kind("v1", "resourcequotas").errors(body) == wanted


def test_quota_rows_and_warnings(kind: Any) -> None:
    quotas = kind("v1", "resourcequotas")
    stored = quotas.create(quota({"requests.cpu": "2", "limits.cpu": "1"}))
    assert quotas.warnings == ["ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"]
    used = {"hard": {"pods": "2", "limits.cpu": "1", "cpu": "3"}, "used": {"pods": "1"}}
    reported = quotas.update(stored, {"status": used}, "status")
    assert quotas.row(reported)[1:3] == ["cpu: 0/3, pods: 1/2", "limits.cpu: 0/1"]
    changed = quotas.errors({"spec": {"scopes": ["Terminating"]}}, stored)
    assert changed == ['spec.scopes: Invalid value: ["Terminating"]: field is immutable']
