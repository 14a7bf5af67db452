"""Rounds that right what crashes and races left wrong between services and what is allocated for them.

A service whose address or port is not kept as taken gets it kept; what is kept for nobody is given back, but only after
a while, for it may belong to a service that is just being written. Whatever was found is told by events and the log.

A round looks at every service there is, so it looks aside: the loop only does what is to be changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from pilothouse.controllers.own_objects import create_missing, remove
from pilothouse.controllers.runtime.event_series import SeriesRecorder
from pilothouse.controlplane.allocation.node_ports import NodePorts
from pilothouse.controlplane.allocation.ranges import AddressBlock, PortSet
from pilothouse.controlplane.allocation.repair import (
    AddressRepair,
    Note,
    PortClaim,
    PortRepair,
    claimed_ports,
    repair_addresses,
    repair_ports,
)
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, now_instant
from pilothouse.machinery.workers import aside
from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher.entries import Entry

logger = logging.getLogger(__name__)
INTERVAL_SECONDS: Final = 180.0
_PORT_ERRORS: Final = {
    "PortNotAllocated": "repair",
    "PortAlreadyAllocated": "duplicate",
    "PortOutOfRange": "outOfRange",
}


class ServiceRepair:
    """Compares the services with addresses and ports."""

    def __init__(
        self,
        services: Store,
        addresses: Store,
        service_cidrs: Store,
        events: Store,
        node_ports: NodePorts,
        clock: Callable[[], Instant] = now_instant,
    ) -> None:
        self._address_events = SeriesRecorder(events, "ipallocator-repair-controller")
        self._port_events = SeriesRecorder(events, "portallocator-repair-controller")
        self._services, self._addresses, self._service_cidrs = services, addresses, service_cidrs
        self._node_ports = node_ports
        self._clock = clock
        self._leaks: dict[int, int] = {}

    async def reconcile(self) -> None:
        """One round: ports, then addresses."""
        await self.repair_ports()
        await self.repair_addresses()

    async def repair_ports(self) -> None:
        """Keep the ports of all services as taken, and give back those that nobody has had for some rounds."""
        services = await _entries(self._services)

        def look() -> list[PortClaim]:
            return claimed_ports(_decoded(self._services, services))

        claims = await aside(look)

        def work(ports: PortSet) -> PortRepair:
            repair = repair_ports(self._node_ports.range, ports, claims, self._leaks)
            ports.bits = repair.ports.bits
            return repair

        metrics = self._node_ports.metrics
        try:
            repair = await self._node_ports.change(work)
        except Exception:
            metrics.failed_repair()
            raise
        self._leaks = repair.leaks
        for kind in [*(_PORT_ERRORS[note.reason] for note in repair.notes), *("leak" for _ in repair.leaked)]:
            metrics.found_error(kind)
        await _report(repair.notes, self._port_events)

    async def repair_addresses(self) -> None:
        """Give every address of a service its object, and remove objects that nobody needs."""
        kept = await _entries(self._service_cidrs)
        services, addresses = await _entries(self._services), await _entries(self._addresses)

        def look() -> AddressRepair:
            cidrs = [cidr for obj in _decoded(self._service_cidrs, kept) for cidr in obj["spec"].get("cidrs") or ()]
            blocks = [block for block in map(AddressBlock.parse, cidrs) if block is not None]
            of_addresses = _decoded(self._addresses, addresses)
            return repair_addresses(_decoded(self._services, services), of_addresses, blocks, self._clock())

        repair = await aside(look)
        for name in repair.delete:
            await remove(self._addresses, "", name)
        for obj in repair.create:
            await create_missing(self._addresses, obj)
        await _report(repair.notes, self._address_events)


async def _entries(store: Store) -> list[Entry]:
    await store.cache.wait_fresh()
    return await store.cache.read(store.cache.entries())


def _decoded(store: Store, entries: Iterable[Entry]) -> list[Object]:
    """The objects of entries, without what takes most of their room and is not looked at here."""
    objects = []
    for entry in entries:
        obj = store.decode(entry)
        obj["metadata"].pop("managedFields", None)
        objects.append(obj)
    return objects


async def _report(notes: Iterable[Note], events: SeriesRecorder) -> None:
    for note in notes:
        metadata = note.about["metadata"]
        logger.warning("%s %s/%s: %s", note.reason, metadata.get("namespace", ""), metadata["name"], note.message)
        of_address = note.action == "IPAddressAllocation"
        kind, version = ("IPAddress", "networking.k8s.io/v1") if of_address else ("Service", "v1")
        await events.warn(note.about, kind, version, note.reason, note.action, note.message)
