"""What is wrong between services and what is allocated for them, and how to right it.

Pure functions: the state in, fixes out. A loop that applies them, and the events they give rise to, is somebody else's.
Young objects get time: an address exists before the service it is for, and a port before its service is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pilothouse.apis.core.service.fields import HEADLESS, needs_cluster_ip, spec_of
from pilothouse.controlplane.allocation.cluster_ips import (
    ALLOCATOR,
    FAMILY_LABEL,
    MANAGED_BY_LABEL,
    belongs_to,
    make_address,
)
from pilothouse.controlplane.allocation.ranges import AddressBlock, PortRange, PortSet, RangeError
from pilothouse.machinery.addresses import parse_ip
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

GRACE_SECONDS: Final = 60
WRITE_SECONDS: Final = 5
ROUNDS_BEFORE_CLEANUP: Final = 3


@dataclass(frozen=True, slots=True)
class Note:
    """A warning event about an object."""

    about: Object
    reason: str
    action: str
    message: str


@dataclass(slots=True)
class AddressRepair:
    """IPAddresses to delete, then to create, and what to say about it. ``again_in`` names those still too young."""

    delete: list[str] = field(default_factory=list)
    create: list[Object] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    again_in: dict[str, float] = field(default_factory=dict)


def repair_addresses(
    services: Sequence[Object], addresses: Iterable[Object], blocks: Sequence[AddressBlock], now: Instant
) -> AddressRepair:
    """Every address of a service has its object, and every object made by the allocator has its service."""
    repair = AddressRepair()
    by_name = {obj["metadata"]["name"]: obj for obj in addresses}
    by_key = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj for obj in services}
    for service in services:
        for ip in _cluster_ips(service):
            _repair_service_address(repair, service, ip, by_name, by_key, blocks)
    made_anew = set(repair.delete)
    for name, obj in by_name.items():
        if name not in made_anew:
            _repair_owner(repair, obj, by_key, now)
    return repair


def _cluster_ips(service: Object) -> list[str]:
    spec = spec_of(service)
    if not needs_cluster_ip(spec) or spec.get("clusterIP", "") in ("", HEADLESS):
        return []
    return list(spec.get("clusterIPs") or [])


def _repair_service_address(
    repair: AddressRepair,
    service: Object,
    ip: str,
    by_name: Mapping[str, Object],
    by_key: Mapping[tuple[str, str], Object],
    blocks: Sequence[AddressBlock],
) -> None:
    def note(reason: str, message: str, action: str = "ClusterIPAllocation") -> None:
        repair.notes.append(Note(service, reason, action, message))

    address = parse_ip(ip)
    if address is None:
        why = f"Cluster IP {ip} is not a valid IP; please recreate Service"
        note("ClusterIPNotValid", why, "ClusterIPValidation")
        return
    name, family = str(address), "IPv4" if address.is_ipv4 else "IPv6"
    if not any(block.contains(address) for block in blocks):
        why = f"Cluster IP [{family}]: {name} is not within any configured Service CIDR; please recreate service"
        note("ClusterIPOutOfRange", why)
        return
    held = by_name.get(name)
    if held is None:
        note("ClusterIPNotAllocated", f"Cluster IP [{family}]: {name} is not allocated; repairing")
        repair.create.append(make_address(name, service))
        return
    if not belongs_to(held, service):
        holder = _holder(held, by_key)
        if holder is not None and name in _cluster_ips(holder):
            why = f"Cluster IP [{family}]:{name} was assigned to multiple services; please recreate service"
            note("ClusterIPAlreadyAllocated", why)
        if holder is None:
            metadata = service["metadata"]
            whose = f"{metadata.get('namespace', '')}/{metadata['name']}"
            why = f"the ClusterIP [{family}]: {name} for Service {whose} has a wrong reference; repairing"
            note("ClusterIPNotAllocated", why)
            _recreate(repair, name, service)
            return
    labels = held["metadata"].get("labels") or {}
    if labels.get(MANAGED_BY_LABEL) != ALLOCATOR or labels.get(FAMILY_LABEL) != family:
        _recreate(repair, name, service)


def _recreate(repair: AddressRepair, name: str, service: Object) -> None:
    repair.delete.append(name)
    repair.create.append(make_address(name, service))


def _holder(address: Object, by_key: Mapping[tuple[str, str], Object]) -> Object | None:
    """The service an IPAddress is held for, if it is held for one that exists."""
    parent = (address.get("spec") or {}).get("parentRef") or {}
    if parent.get("group") or parent.get("resource") != "services":
        return None
    return by_key.get((parent.get("namespace", ""), parent.get("name", "")))


def _repair_owner(
    repair: AddressRepair, address: Object, by_key: Mapping[tuple[str, str], Object], now: Instant
) -> None:
    metadata = address["metadata"]
    name = metadata["name"]
    if (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) != ALLOCATOR:
        return

    def clean(reason: str, message: str) -> None:
        repair.notes.append(Note(address, reason, "IPAddressAllocation", message))
        repair.delete.append(name)

    parent = (address.get("spec") or {}).get("parentRef") or {}
    if parent.get("group") or parent.get("resource") != "services":
        why = f"IPAddress {name} appears to have been modified, not referencing a Service {parent}: cleaning up"
        clean("IPAddressNotAllocated", why)
        return
    age = now.since(parse_time(metadata["creationTimestamp"]))
    whose = f"{parent.get('namespace', '')}/{parent.get('name', '')}"
    service = by_key.get((parent.get("namespace", ""), parent.get("name", "")))
    if service is None:
        if age > GRACE_SECONDS:
            clean("IPAddressNotAllocated", f"IPAddress: {name} for Service {whose} appears to have leaked: cleaning up")
        else:
            repair.again_in[name] = GRACE_SECONDS - age
        return
    spec = spec_of(service)
    if name in (spec.get("clusterIPs") or ()):
        return
    if spec.get("type") == "ExternalName" and age < GRACE_SECONDS:
        repair.again_in[name] = GRACE_SECONDS - age
    elif metadata["creationTimestamp"] > service["metadata"]["creationTimestamp"] and age < WRITE_SECONDS:
        repair.again_in[name] = WRITE_SECONDS
    else:
        clean("IPAddressWrongReference", f"IPAddress: {name} for Service {whose} has a wrong reference; cleaning up")


class PortClaim(NamedTuple):
    """A service has a port."""

    service: Object
    port: int


@dataclass(slots=True)
class PortRepair:
    """The ports as they should be kept, what may have leaked and for how many rounds more, and what to say about it.

    ``leaked`` has the ports that are freed.
    """

    ports: PortSet
    leaks: dict[int, int]
    leaked: list[int] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def claimed_ports(services: Iterable[Object]) -> list[PortClaim]:
    """The ports that services have, in the order of the services."""
    return [PortClaim(service, port) for service in services for port in _ports_of(service)]


def repair_ports(
    range_: PortRange, stored: PortSet, claims: Iterable[PortClaim], leaks: Mapping[int, int]
) -> PortRepair:
    """Every port of a service is allocated; a port that no service has is freed after some rounds.

    ``leaks`` is the last round's.
    """
    repair = PortRepair(PortSet(range_), dict(leaks))
    for claim in claims:
        _repair_port(repair, stored, claim.service, claim.port)
    for port in stored:
        if port in repair.ports or port not in range_:
            continue
        rounds = repair.leaks.get(port, ROUNDS_BEFORE_CLEANUP - 1)
        if rounds > 0:
            repair.leaks[port] = rounds - 1
            repair.ports.allocate(port)
        else:
            repair.leaks.pop(port, None)
            repair.leaked.append(port)
    return repair


def _repair_port(repair: PortRepair, stored: PortSet, service: Object, port: int) -> None:
    def note(reason: str, message: str) -> None:
        repair.notes.append(Note(service, reason, "PortAllocation", message))

    duplicate = port in repair.ports
    try:
        repair.ports.allocate(port)
    except RangeError:
        if duplicate:
            why = f"Port {port} was assigned to multiple services; please recreate service"
            note("PortAlreadyAllocated", why)
        else:
            why = f"Port {port} is not within the port range {repair.ports.range}; please recreate service"
            note("PortOutOfRange", why)
        return
    repair.leaks.pop(port, None)
    if port not in stored:
        note("PortNotAllocated", f"Port {port} is not allocated; repairing")


def _ports_of(service: Object) -> list[int]:
    """A service's ports; one port for two protocols counts once, twice for one protocol twice."""
    spec = spec_of(service)
    found: list[int] = []
    protocols: dict[int, set[str]] = {}
    for port in spec.get("ports") or ():
        number, protocol = port.get("nodePort", 0), port.get("protocol", "")
        if number and (number not in protocols or protocol in protocols[number]):
            found.append(number)
        protocols.setdefault(number, set()).add(protocol)
    health = spec.get("healthCheckNodePort", 0)
    if health and (health not in protocols or "TCP" in protocols[health]):
        found.append(health)
    return found
