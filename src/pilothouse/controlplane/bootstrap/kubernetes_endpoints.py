"""The endpoints of the ``kubernetes`` service: the addresses of all servers, in both forms.

With ``--endpoint-reconciler-type=lease`` these are the servers that hold a lease. A server renews its lease every ten
seconds and puts the endpoints right if they are not; one that goes takes its lease back, one that dies loses it after
fifteen. Whoever comes by next removes the address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pilothouse.controllers.own_objects import create, existing, remove, update
from pilothouse.controlplane.bootstrap.address_leases import AddressLeases
from pilothouse.machinery.objects import Object
from pilothouse.registry.store.store import Store

logger = logging.getLogger(__name__)
NAMESPACE: Final = "default"
NAME: Final = "kubernetes"
SKIP_MIRROR: Final = "endpointslice.kubernetes.io/skip-mirror"
SERVICE_NAME: Final = "kubernetes.io/service-name"
Correct = Callable[[Object], Object | None]


class EndpointsObjects:
    """The Endpoints of the service and the EndpointSlice that says the same."""

    def __init__(self, endpoints: Store, slices: Store) -> None:
        self._endpoints, self._slices = endpoints, slices

    async def get(self) -> Object | None:
        """The Endpoints; None if there are none."""
        return await existing(self._endpoints, NAMESPACE, NAME)

    async def put_right(self, correct: Correct, *, may_create: bool = True) -> None:
        """Have the Endpoints as ``correct`` wants them (None: they are right), and the slice with them."""
        stored = await self.get()
        if stored is None and not may_create:
            return
        current: Object = stored or {"metadata": {"name": NAME, "namespace": NAMESPACE}}
        wanted = correct(current)
        if wanted is None:
            wanted = current
        elif stored is None:
            await create(self._endpoints, {**wanted, "metadata": dict(wanted["metadata"])})
        else:
            await update(self._endpoints, NAMESPACE, NAME, correct)
        await self._put_slice_right(slice_of(wanted))

    async def _put_slice_right(self, wanted: Object) -> None:
        current = await existing(self._slices, NAMESPACE, NAME)
        if current is not None and current.get("addressType") != wanted["addressType"]:
            await remove(self._slices, NAMESPACE, NAME)
            current = None
        if current is None:
            await create(self._slices, wanted)
        elif not _same_slice(current, wanted):
            await update(self._slices, NAMESPACE, NAME, lambda obj: _with_slice(obj, wanted))


class EndpointReconciler(Protocol):
    """Keeps the address of one server among the endpoints."""

    async def reconcile(self) -> None:
        """Have the address there. Does nothing once it was withdrawn."""

    async def withdraw_stale(self) -> None:
        """Forget what an earlier server at this address left behind: it is not ready to serve."""

    async def withdraw(self) -> None:
        """Leave for good."""


class LeasedEndpoints:
    """The endpoints are the servers that hold a lease; this one is at ``address``."""

    def __init__(self, objects: EndpointsObjects, leases: AddressLeases, address: str, port: int) -> None:
        self._objects, self._leases = objects, leases
        self._address = address
        self._ports = service_ports(port)
        self._stopping = False
        self._lock = asyncio.Lock()

    async def reconcile(self) -> None:
        """Renew the own lease, then put right what is wrong. Ports are left as another server may have set them."""
        async with self._lock:
            if self._stopping:
                return
            await self._leases.renew(self._address, {"addresses": [{"ip": self._address}]})
            await self._put_right(check_ports=False)

    async def withdraw_stale(self) -> None:
        """Forget what an earlier server at this address left behind: it is not ready to serve."""
        async with self._lock:
            if await self._leases.remove(self._address):
                logger.warning("found the lease of an earlier server at %s, which did not stop properly", self._address)
                if await self._leases.addresses():
                    await self._put_right(check_ports=True)

    async def withdraw(self) -> None:
        """Leave for good: the address goes, even if it was the last."""
        self._stopping = True
        async with self._lock:
            if await self._leases.remove(self._address):
                await self._put_right(check_ports=True)

    async def _put_right(self, *, check_ports: bool) -> None:
        addresses = await self._leases.addresses()
        if not addresses and not self._stopping:
            raise RuntimeError(
                "no API server IP addresses were listed in storage, refusing to erase all endpoints for the kubernetes "
                "Service"
            )
        await self._objects.put_right(
            lambda obj: corrected(obj, addresses, self._ports, check_ports=check_ports), may_create=not self._stopping
        )


def service_ports(port: int) -> list[Object]:
    """The ports of the endpoints, for a server that listens on one."""
    return [{"name": "https", "port": port, "protocol": "TCP"}]


def corrected(
    endpoints: Object, addresses: Sequence[str], ports: Sequence[Object], *, check_ports: bool
) -> Object | None:
    """The endpoints as they should be; None if they are right."""
    metadata, subsets = endpoints["metadata"], endpoints.get("subsets") or []
    labelled = (metadata.get("labels") or {}).get(SKIP_MIRROR) == "true"
    well_formed = len(subsets) == 1
    if well_formed:
        known = [address["ip"] for address in subsets[0].get("addresses") or ()]
        right_addresses = len(known) == len(addresses) and set(known) == set(addresses)
        right_ports = not check_ports or subsets[0].get("ports") == list(ports)
        if labelled and right_addresses and right_ports:
            return None
    subset: Object = dict(subsets[0]) if well_formed else {}
    if not well_formed or not right_ports:
        subset["ports"] = [dict(port) for port in ports]
    if not well_formed or not right_addresses:
        subset.pop("addresses", None)
        subset = {"addresses": [{"ip": ip} for ip in sorted(addresses)], **subset}
    result = {**endpoints, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), SKIP_MIRROR: "true"}}}
    result.pop("subsets", None)
    if subset["addresses"] or subset.get("notReadyAddresses"):
        result["subsets"] = [subset]
    return result


def slice_of(endpoints: Object) -> Object:
    """The EndpointSlice that says the same as the Endpoints."""
    subset: Object = (endpoints.get("subsets") or [{}])[0]
    ready, unready = subset.get("addresses") or [], subset.get("notReadyAddresses") or []
    family = 6 if ready + unready and all(_family(each) == 6 for each in ready + unready) else 4
    members = [
        {"addresses": [each["ip"]], "conditions": {"ready": is_ready}}
        for group, is_ready in ((ready, True), (unready, False))
        for each in group
        if _family(each) == family
    ]
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": {SERVICE_NAME: NAME}}
    ports = [{key: port[key] for key in ("name", "port", "protocol")} for port in subset.get("ports") or ()]
    # A slice without members or ports has null there: these fields are never left out.
    return {
        "metadata": metadata,
        "addressType": f"IPv{family}",
        "endpoints": members or None,
        "ports": ports or None,
    }


def _family(address: Object) -> int:
    return ipaddress.ip_address(address["ip"]).version


def _same_slice(current: Object, wanted: Object) -> bool:
    labels = current["metadata"].get("labels") or {}
    same_fields = all((current.get(key) or None) == wanted[key] for key in ("endpoints", "ports"))
    return same_fields and labels == wanted["metadata"]["labels"]


def _with_slice(current: Object, wanted: Object) -> Object:
    metadata = {**current["metadata"], "labels": wanted["metadata"]["labels"]}
    return {**current, "metadata": metadata, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}
