from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from pilothouse.controllers.service_cidrs import may_go
from pilothouse.testing.running_controllers import RunningControllers


def cidr(name: str, *cidrs: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"cidrs": list(cidrs)}}


@pytest.mark.parametrize(
    ("others", "allocated", "free"),
    [
        ([], [], True),
        ([], ["10.1.0.5"], False),
        ([], ["10.2.0.5"], True),
        ([cidr("b", "10.0.0.0/8")], ["10.1.0.5"], True),
        ([cidr("b", "10.1.0.0/28")], ["10.1.0.5"], True),
        ([cidr("b", "10.1.0.0/28")], ["10.1.0.5", "10.1.0.200"], False),
        ([cidr("b", "fd00::/64")], ["10.1.0.5"], False),
    ],
)
def test_when_a_range_may_go(others: list[dict[str, Any]], allocated: list[str], free: bool) -> None:
    own = cidr("a", "10.1.0.0/24")
    assert may_go(own, [own, *others], map(ip_address, allocated)) is free


async def test_a_range_in_use_stays() -> None:
    async with RunningControllers("service_cidrs") as cluster:
        cidrs, addresses = (
            cluster.of("networking.k8s.io", "v1", resource) for resource in ("servicecidrs", "ipaddresses")
        )
        await cidrs.create(cidr("extra", "192.168.77.0/24"))
        ready = await cluster.wait(cidrs, "", "extra", lambda obj: (obj.get("status") or {}).get("conditions"))
        assert ready["status"]["conditions"][0]["message"] == "Kubernetes Service CIDR is ready"
        assert ready["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
        labels = {
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            "ipaddress.kubernetes.io/ip-family": "IPv4",
        }
        parent = {"resource": "services", "namespace": "default", "name": "x"}
        await addresses.create({"metadata": {"name": "192.168.77.9", "labels": labels}, "spec": {"parentRef": parent}})
        await cluster.wait(addresses, "", "192.168.77.9")
        await cidrs.delete("", "extra")
        kept = await cluster.wait(cidrs, "", "extra", lambda obj: obj["status"]["conditions"][0]["status"] == "False")
        assert kept["status"]["conditions"][0]["reason"] == "Terminating"
