"""Limit ranges."""

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
def test_limit_range_errors(kind: Any, fields: dict[str, Any], wanted: Any) -> None:
    found = kind("v1", "limitranges").errors(limit(**fields))
    if isinstance(wanted, int):
        assert len({error.partition(":")[0] for error in found}) == wanted
    else:
        assert found == wanted
