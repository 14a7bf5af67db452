"""Cluster addresses, each held by an IPAddress object named after it.

The object is created only if absent, so two servers, or two requests of one, never hand out the same address: who loses
the race tries the next candidate. The blocks that addresses are taken from are the ServiceCIDRs as they are then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from time import monotonic
from typing import Any, Final, Protocol

from pilothouse.controlplane.allocation.metrics import DYNAMIC, STATIC, AllocationMetrics
from pilothouse.controlplane.allocation.ranges import FULL, AddressBlock
from pilothouse.machinery import times
from pilothouse.machinery.addresses import parse_ip
from pilothouse.machinery.objects import Object

FAMILY_LABEL: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY_LABEL: Final = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR: Final = "ipallocator.k8s.io"
_TRIED_IN_A_TURN: Final = 500
"""A block that is nearly full is looked through, and others get their turn meanwhile."""
_OWNED: Final[dict[str, Any]] = {
    "f:metadata": {"f:labels": {".": {}, f"f:{FAMILY_LABEL}": {}, f"f:{MANAGED_BY_LABEL}": {}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


class AddressObjects(Protocol):
    """Where IPAddress objects and ServiceCIDRs are."""

    async def ready(self) -> None:
        """Wait until the reads below reflect what has been acknowledged."""

    def ranges(self) -> Sequence[Object]:
        """All ServiceCIDRs as they are now."""

    def is_taken(self, name: str) -> bool:
        """Whether the cache has this IPAddress."""

    async def create(self, obj: Object) -> bool:
        """Create an IPAddress; False when there is one already."""

    async def delete(self, name: str) -> None:
        """Delete an IPAddress; one that has gone does not matter."""


class AllocationError(Exception):
    """Why an address cannot be had. ``full`` when nothing is left at all."""

    @property
    def full(self) -> bool:
        return str(self) == FULL


def make_address(name: str, service: Object) -> Object:
    """The object that says an address belongs to a service."""
    metadata = service["metadata"]
    parent = {"resource": "services", "namespace": metadata.get("namespace", ""), "name": metadata["name"]}
    owner = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "time": times.now(),
        "fieldsType": "FieldsV1",
        "fieldsV1": _OWNED,
    }
    labels = {FAMILY_LABEL: "IPv6" if ":" in name else "IPv4", MANAGED_BY_LABEL: ALLOCATOR}
    return {"metadata": {"name": name, "labels": labels, "managedFields": [owner]}, "spec": {"parentRef": parent}}


def belongs_to(address: Object | None, service: Object) -> bool:
    """Whether an IPAddress is held for this service."""
    parent = ((address or {}).get("spec") or {}).get("parentRef") or {}
    metadata = service["metadata"]
    return bool(
        not parent.get("group")
        and parent.get("resource") == "services"
        and parent.get("namespace", "") == metadata.get("namespace", "")
        and parent.get("name") == metadata.get("name")
    )


def is_ready(service_cidr: Object) -> bool:
    """Whether addresses may be taken from a block: it is not going, and nobody says that it is not ready."""
    if service_cidr["metadata"].get("deletionTimestamp"):
        return False
    conditions = (service_cidr.get("status") or {}).get("conditions") or ()
    return all(each.get("status") == "True" for each in conditions if each.get("type") == "Ready")


class ClusterIPs:
    """Hands out addresses and takes them back."""

    def __init__(
        self, objects: AddressObjects, rng: Random | None = None, metrics: AllocationMetrics | None = None
    ) -> None:
        self._objects = objects
        self._metrics = metrics or AllocationMetrics()
        self._rng = rng or Random()

    def blocks(self) -> list[tuple[AddressBlock, bool]]:
        """(block, whether it is ready), each block once: it is ready if any ServiceCIDR that has it is."""
        found: dict[str, tuple[AddressBlock, bool]] = {}
        for obj in self._objects.ranges():
            ready = is_ready(obj)
            for text in (obj.get("spec") or {}).get("cidrs") or ():
                block = AddressBlock.parse(text)
                if block is not None:
                    found[block.text] = block, ready or found.get(block.text, (block, False))[1]
        return list(found.values())

    async def allocate(self, service: Object, ip: str, *, dry_run: bool = False) -> None:
        """Take this address. Raises ``AllocationError``."""
        address = parse_ip(ip)
        if address is None:
            raise AllocationError(f'failed to parse service IP "{ip}"')
        await self._objects.ready()
        if dry_run:
            self._check_dry(str(address), address)
            return
        block = next((block for block, ready in self.blocks() if ready and block.contains(address)), None)
        if block is None:
            raise AllocationError("the provided network does not match the current range")
        if not await self._take(service, str(address), block, STATIC, monotonic()):
            raise AllocationError("provided IP is already allocated")

    async def _take(self, service: Object, ip: str, block: AddressBlock, scope: str, started: float) -> bool:
        if not service["metadata"].get("name"):  # addresses are taken before anybody asks for a name
            raise AllocationError(f'IPAddress.networking.k8s.io "{ip}" is invalid: spec.parentRef.name: Required value')
        if await self._objects.create(make_address(ip, service)):
            self._metrics.took_address(block, scope, monotonic() - started)
            return True
        self._metrics.refused_address(block, scope)
        return False

    def _check_dry(self, shown: str, address: Any) -> None:
        """A dry run looks at one block only, as kube-apiserver does, and not at who has the address."""
        block = self._dry_block("IPv4" if address.is_ipv4 else "IPv6")
        if not block.contains(address):
            raise AllocationError(
                f"the provided IP ({shown}) is not in the valid range. The range of valid IPs is {block.text}"
            )

    def _dry_block(self, family: str) -> AddressBlock:
        for block, ready in self.blocks():
            if block.family == family and ready:
                return block
        raise AllocationError("allocator not ready")

    async def allocate_next(self, service: Object, family: str, *, dry_run: bool = False) -> str:
        """Take any free address of a family. Raises ``AllocationError``."""
        await self._objects.ready()
        if dry_run:
            return self._dry_block(family).network_address
        for block, ready in self.blocks():
            if not ready or block.family != family:
                continue
            started = monotonic()
            for tried, ip in enumerate(block.candidates(self._rng), 1):
                if not self._objects.is_taken(ip) and await self._take(service, ip, block, DYNAMIC, started):
                    return ip
                if tried % _TRIED_IN_A_TURN == 0:
                    await asyncio.sleep(0)
            self._metrics.refused_address(block, DYNAMIC)
        raise AllocationError(FULL)

    async def release(self, ip: str) -> None:
        """Give an address of some block back, whoever it is held for by now."""
        address = parse_ip(ip)
        await self._objects.ready()
        if address is not None and any(block.contains(address) for block, _ in self.blocks()):
            await self._objects.delete(str(address))
