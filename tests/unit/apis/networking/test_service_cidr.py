"""Blocks of service addresses."""

from __future__ import annotations

from typing import Any

import pytest

GROUP = "networking.k8s.io/v1"


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([], ["spec.cidrs: Required value: at least one CIDR required"]),
        (["10.0.0.0/24", "fd00::/64"], []),
        (
            ["10.0.0.0/24", "10.0.1.0/24"],
            [
                'spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            ],
        ),
        (
            ["::ffff:10.0.0.0/120", "::ffff:10.0.1.0/120"],
            [
                f'spec.cidrs[{at}]: Invalid value: "{block}": must not have an IPv4-mapped IPv6 address'
                for at, block in enumerate(("::ffff:10.0.0.0/120", "::ffff:10.0.1.0/120"))
            ],
        ),
        (
            ["10.0.0.0/24", "fd00::/64", "10.0.1.0/24"],
            [
                'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fd00::/64","10.0.1.0/24"]}: '
                "may only hold up to 2 values"
            ],
        ),
    ],
)
def test_service_cidr_errors(kind: Any, blocks: list[str], wanted: list[str]) -> None:
    assert kind(GROUP, "servicecidrs").errors({"spec": {"cidrs": blocks}}) == wanted


def test_a_second_family_may_be_added(kind: Any) -> None:
    cidrs = kind(GROUP, "servicecidrs")
    stored = cidrs.create({"spec": {"cidrs": ["10.0.0.0/24"]}})
    assert cidrs.errors({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}, stored) == []
    assert cidrs.errors({"spec": {"cidrs": ["10.0.1.0/24"]}}, stored) == [
        'spec.cidrs[0]: Invalid value: "10.0.1.0/24": field is immutable'
    ]
    labelled = cidrs.update(stored, {"metadata": {"labels": {"a": "b"}}, "status": {"conditions": []}}, "status")
    assert "labels" not in labelled["metadata"]
