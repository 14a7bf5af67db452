import pytest

from pilothouse.controlplane.allocation.cluster_ips import ClusterIPs
from pilothouse.controlplane.allocation.node_ports import NodePorts, StoredLedger
from pilothouse.controlplane.allocation.ranges import PortRange
from pilothouse.controlplane.allocation.services import ServiceAllocations
from pilothouse.controlplane.allocation.stored_addresses import StoredAddresses
from pilothouse.machinery.gvk import GroupResource
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher


@pytest.fixture
async def storage(cacher: Cacher) -> StorageFactory:
    """Stores whose services get their addresses and ports, as in a server."""

    def reserve(storage: StorageFactory) -> ServiceAllocations:
        addresses = StoredAddresses(
            storage.store("networking.k8s.io", "v1", "ipaddresses"),
            storage.store("networking.k8s.io", "v1", "servicecidrs"),
        )
        ports = NodePorts(PortRange(30000, 2768), StoredLedger(cacher.backend))
        return ServiceAllocations(["IPv4"], ClusterIPs(addresses), ports)

    return StorageFactory(cacher, reservations={GroupResource("", "services"): reserve})
