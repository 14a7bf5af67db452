"""Whatever fails and whenever they are killed: addresses keep their range, and endpoints are mirrored once."""

from __future__ import annotations

import time
from collections import Counter
from ipaddress import ip_address
from typing import Any

import pytest

from pilothouse.controllers.service_cidrs import containing
from pilothouse.machinery.objects import Object

from .trouble import SEEDS, TroubledControllers

GROUP = "networking.k8s.io"
MIRRORED = "endpointslicemirroring-controller.k8s.io"


@pytest.mark.parametrize("seed", SEEDS)
async def test_service_ranges(seed: int) -> None:
    """Of ranges that are deleted at once, one stays for as long as an address needs it."""
    async with TroubledControllers(seed, "service_cidrs", seconds=5.0) as cluster:
        cidrs, addresses = cluster.of(GROUP, "v1", "servicecidrs"), cluster.of(GROUP, "v1", "ipaddresses")

        async def are_ready() -> bool:
            found = [each for each in await cluster.all(GROUP, "servicecidrs") if each["metadata"]["name"] in "abc"]
            return len(found) == 3 and all(
                [each["status"] for each in (cidr.get("status") or {}).get("conditions") or ()] == ["True"]
                and cidr["metadata"].get("finalizers")
                for cidr in found
            )

        for name, cidr in (("a", "192.168.77.0/24"), ("b", "192.168.77.0/24"), ("c", "192.168.0.0/17")):
            await cidrs.create({"metadata": {"name": name}, "spec": {"cidrs": [cidr]}})
        await cluster.survive(are_ready)
        labels = {
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            "ipaddress.kubernetes.io/ip-family": "IPv4",
        }
        parent = {"resource": "services", "namespace": "default", "name": "x"}
        used = "192.168.77.9"
        await addresses.create({"metadata": {"name": used, "labels": labels}, "spec": {"parentRef": parent}})
        await cluster.wait(addresses, "", used)
        needed = True

        def address_is_in_a_range(found: list[Object]) -> None:
            assert not needed or containing(found, ip_address(used)), "an address without a range"

        cluster.never(cluster.informers.of(GROUP, "v1", "servicecidrs"), address_is_in_a_range)
        # What was waited for so far put the clock ahead of the server's, by more than the grace of deletions.
        cluster.clock.set_wall_clock(time.time())
        for name in cluster.rng.sample("abc", 3):
            await cidrs.delete("", name)

        async def one_is_left() -> bool:
            found = [each for each in await cluster.all(GROUP, "servicecidrs") if each["metadata"]["name"] in "abc"]
            return len(found) == 1 and found[0]["status"]["conditions"][0]["reason"] == "Terminating"

        await cluster.survive(one_is_left)
        needed = False
        await addresses.delete("", used)

        async def have_gone() -> bool:
            return not any(each["metadata"]["name"] in "abc" for each in await cluster.all(GROUP, "servicecidrs"))

        await cluster.survive(have_gone)


def endpoints(name: str, *addresses: str) -> Object:
    subset: dict[str, Any] = {"addresses": [{"ip": each} for each in addresses], "ports": [{"port": 80}]}
    return {"metadata": {"name": name, "namespace": "default"}, "subsets": [subset]}


@pytest.mark.parametrize("seed", SEEDS)
async def test_mirroring(seed: int) -> None:
    """Endpoints that somebody writes by hand are in one slice, each once, and in none when they are gone."""
    async with TroubledControllers(seed, "endpoints.mirroring") as cluster:
        legacy = cluster.of("", "v1", "endpoints")
        for name in ("db", "cache"):
            metadata = {"name": name, "namespace": "default"}
            await cluster.of("", "v1", "services").create({"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
            await legacy.create(endpoints(name, "10.0.0.1"))
        addresses: tuple[str, ...] = ()
        for number in range(2, 7):
            addresses = tuple(f"10.0.0.{each}" for each in range(number - 1, number + 2))
            await legacy.update(endpoints("db", *addresses))
            if cluster.rng.random() < 0.5:
                await cluster.restart()
        await legacy.delete("default", "cache")

        async def are_mirrored() -> bool:
            slices = [
                each
                for each in await cluster.all("discovery.k8s.io", "endpointslices")
                if each["metadata"]["labels"].get("endpointslice.kubernetes.io/managed-by") == MIRRORED
                and each["metadata"]["labels"]["kubernetes.io/service-name"] in ("db", "cache")
            ]
            listed = Counter(
                (each["metadata"]["labels"]["kubernetes.io/service-name"], endpoint["addresses"][0])
                for each in slices
                for endpoint in each.get("endpoints") or ()
            )
            return len(slices) == 1 and listed == Counter(("db", each) for each in addresses)

        await cluster.survive(are_mirrored)
