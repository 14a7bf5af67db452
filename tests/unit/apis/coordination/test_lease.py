"""Leases."""

from __future__ import annotations

from typing import Any


def test_leases(kind: Any) -> None:
    leases = kind("coordination.k8s.io/v1", "leases")
    made = leases.create({"spec": {"holderIdentity": "x"}})
    assert leases.row(made)[1] == "x"
    assert leases.errors({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}) == [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ]
    assert leases.strategy.update_rules.allow_create
    assert not leases.strategy.update_rules.allow_unconditional
