"""Giving services their addresses and ports: from flags to the allocators behind the service store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.controlplane.allocation.cluster_ips import ClusterIPs
from pilothouse.controlplane.allocation.metrics import AllocationMetrics
from pilothouse.controlplane.allocation.node_ports import NodePorts, StoredLedger
from pilothouse.controlplane.allocation.ranges import PortRange
from pilothouse.controlplane.allocation.services import ServiceAllocations
from pilothouse.controlplane.allocation.stored_addresses import StoredAddresses
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.backends.contract import Backend

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions


def install_allocation(options: ServerOptions, storage: StorageFactory, backend: Backend) -> NodePorts:
    """Let the service store reserve addresses and ports; the ports are shared with their repair."""
    wanted = options.control_plane.service_node_port_range
    addresses = StoredAddresses(
        storage.store("networking.k8s.io", "v1", "ipaddresses"),
        storage.store("networking.k8s.io", "v1", "servicecidrs"),
    )
    metrics, ledger = AllocationMetrics(addresses.names), StoredLedger(backend, options.etcd.etcd_prefix)
    ports = NodePorts(PortRange(wanted.base, wanted.size), ledger, metrics=metrics)
    cluster_ips = ClusterIPs(addresses, metrics=metrics)
    families = [f"IPv{block.version}" for block in options.derived.service_ranges]
    storage.store("", "v1", "services").reservations = ServiceAllocations(families, cluster_ips, ports)
    return ports
