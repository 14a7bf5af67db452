"""Policies of shared capacity, and questions about pools."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.resource.resource_pool_status_request import validate_request
from pilothouse.apis.resource.resource_slice.capacity_validation import validate_policy
from pilothouse.machinery.field_errors import FieldError, Path


def errors_of(span: dict[str, Any], default: str = "1") -> list[str]:
    errs: list[FieldError] = []
    validate_policy("10", {"default": default, "validRange": span}, Path("p"), errs, fractions=True)
    return [str(error) for error in errs]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ({"min": "500m", "step": "500m"}, []),
        ({"min": "100u"}, ['p.validRange.min: Invalid value: "100u": value cannot be represented as a milli value']),
        (
            {"min": "1e30"},
            [
                'p.validRange.min: Invalid value: "1e30": min is larger than capacity value: 10',
                'p.validRange.default: Invalid value: "1": default is less than min: 1e30',
            ],
        ),
        ({"min": "0", "max": "9223372036854775807"}, ["max is larger than capacity value: 10"]),
    ],
)
def test_ranges_of_any_size(span: dict[str, Any], expected: list[str]) -> None:
    found = errors_of(span)
    assert len(found) == len(expected)
    assert all(error.endswith(wanted) for error, wanted in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"driver": "A.example"}, []),
        ({"driver": "a_b"}, ["spec.driver"]),
        ({"driver": "a", "defaultPartitionTypeAttribute": "a.example/kind"}, []),
        ({"driver": "a", "defaultPartitionTypeAttribute": "kind"}, ["spec.defaultPartitionTypeAttribute"]),
    ],
)
def test_questions_about_pools(spec: dict[str, Any], expected: list[str]) -> None:
    assert [str(error).partition(":")[0] for error in validate_request({"limit": 1, **spec})] == expected
