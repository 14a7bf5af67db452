"""Endpoints of the ``kubernetes`` service for a known number of servers (``--endpoint-reconciler-type=master-count``).

Every server adds its own address and, where there are then more than there are servers, removes those that follow it in
order: when each has had its turn, the addresses that are left are those of servers that live. It is the oldest way,
without leases; a server that dies stays listed until another takes its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pilothouse.controlplane.bootstrap.kubernetes_endpoints import SKIP_MIRROR, EndpointsObjects, service_ports
from pilothouse.machinery.objects import Object


class CountedEndpoints:
    """Keeps the address of this server among those of ``count`` servers."""

    def __init__(self, objects: EndpointsObjects, address: str, port: int, count: int) -> None:
        self._objects, self._address, self._count = objects, address, count
        self._ports = service_ports(port)
        self._stopping = False
        self._lock = asyncio.Lock()

    async def reconcile(self) -> None:
        """Have the address there; ports are left as another server may have set them."""
        async with self._lock:
            if not self._stopping:
                await self._objects.put_right(lambda obj: with_address(obj, self._address, self._ports, self._count))

    async def withdraw_stale(self) -> None:
        """Forget what an earlier server at this address left behind: it is not ready to serve."""
        async with self._lock:
            await self._withdraw()

    async def withdraw(self) -> None:
        """Leave for good."""
        self._stopping = True
        async with self._lock:
            await self._withdraw()

    async def _withdraw(self) -> None:
        await self._objects.put_right(lambda obj: without_address(obj, self._address), may_create=False)


def with_address(endpoints: Object, address: str, ports: Sequence[Object], count: int) -> Object | None:
    """The endpoints with an address and no more than ``count`` in all; None if they are so already."""
    metadata, subsets = endpoints["metadata"], endpoints.get("subsets") or []
    labels = metadata.get("labels") or {}
    labelled = {**endpoints, "metadata": {**metadata, "labels": {**labels, SKIP_MIRROR: "true"}}}
    if len(subsets) != 1:
        return {**labelled, "subsets": [{"addresses": [{"ip": address}], "ports": [dict(port) for port in ports]}]}
    known = subsets[0].get("addresses") or []
    if any(each["ip"] == address for each in known) and len(known) <= count:
        return None if labels.get(SKIP_MIRROR) == "true" else labelled
    by_ip = {each["ip"]: each for each in [*known, {"ip": address}]}
    order = sorted(by_ip)
    while len(order) > count:
        del order[(order.index(address) + 1) % len(order)]
    return {**labelled, "subsets": [{**subsets[0], "addresses": [by_ip[ip] for ip in order]}]}


def without_address(endpoints: Object, address: str) -> Object | None:
    """The endpoints without an address; None if it is not there."""
    subsets = endpoints.get("subsets") or []
    if not subsets or all(each["ip"] != address for each in subsets[0].get("addresses") or ()):
        return None
    left = [each for each in subsets[0]["addresses"] if each["ip"] != address]
    first = {**subsets[0], "addresses": left}
    kept = ([first] if left or first.get("notReadyAddresses") else []) + subsets[1:]
    result = {**endpoints, "subsets": kept}
    if not kept:
        del result["subsets"]
    return result
