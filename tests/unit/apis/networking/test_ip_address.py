"""IP addresses of services."""

from __future__ import annotations

from typing import Any

GROUP = "networking.k8s.io/v1"


def test_ip_addresses(kind: Any) -> None:
    addresses = kind(GROUP, "ipaddresses")
    parent = {"resource": "services", "namespace": "n", "name": "s"}
    stored = addresses.create({"metadata": {"name": "10.0.0.1"}, "spec": {"parentRef": parent}})
    assert addresses.row(stored)[:2] == ["10.0.0.1", "services/n/s"]
    assert [column.name for column in addresses.strategy.columns] == ["Name", "ParentRef", ""]
    assert addresses.errors({"metadata": {"name": "2001:db8::0001"}, "spec": {"parentRef": parent}}) == [
        'metadata.name: Invalid value: "2001:db8::0001": must be in canonical form ("2001:db8::1")'
    ]
    assert addresses.errors({"metadata": {"name": "10.0.0.1"}}) == ["spec.parentRef: Required value"]
    other = {"spec": {"parentRef": {**parent, "name": "t"}}}
    assert addresses.errors(other, stored) == ["spec.parentRef: Invalid value: null: field is immutable"]
    assert addresses.errors({"spec": {"parentRef": None}}, stored) == [
        "spec.parentRef: Required value",
        "spec.parentRef: Invalid value: null: field is immutable",
    ]
    assert addresses.errors({"spec": {"parentRef": {"resource": "services"}}}, stored) == [
        "spec.parentRef.name: Required value",
        "spec.parentRef: Invalid value: null: field is immutable",
    ]
