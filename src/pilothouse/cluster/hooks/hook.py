"""A post-start hook as its controller declares it, and what declarations are made from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilothouse.admission.chain import AdmissionChain
from pilothouse.admission.versions import ServedVersions
from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.cluster.server_chain import ServerChain
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controlplane.allocation.node_ports import NodePorts
from pilothouse.controlplane.bootstrap.address_leases import AddressLeases
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.metric_registry import Registry
from pilothouse.machinery.supervision import Supervisor
from pilothouse.openapi.registry import OpenApi
from pilothouse.options import ServerOptions
from pilothouse.registry.storage import StorageFactory
from pilothouse.registry.store.store import Store
from pilothouse.server.health import Check
from pilothouse.server.lifecycle import Lifecycle
from pilothouse.storage.stack import StorageStack

if TYPE_CHECKING:
    from pilothouse.aggregator.peers.routing import Peers
    from pilothouse.simulation.nodes.simulation import Simulation

Start = Callable[[Supervisor], Awaitable[None]]
"""Does what is to be done once, and starts what goes on under the supervisor."""


def _no_error() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class PostStartHook:
    """One hook. Its health check fails until ``start`` has returned, then whenever ``check`` or its supervisor do."""

    name: str
    backed_by: str
    """What runs or is done in its name, for ``pilothouse inspect``."""
    start: Start
    check: Check = _no_error
    before_shutdown: tuple[str, Callable[[], Awaitable[None]]] | None = None
    """The name of a pre-shutdown hook, and what it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """The parts of a cluster that controllers work with."""

    options: ServerOptions
    servers: ServerChain
    storage: StorageFactory
    stack: StorageStack
    lifecycle: Lifecycle
    node_ports: NodePorts
    informers: InformerFactory
    clients: LoopbackClients
    admission: AdmissionChain
    served: ServedVersions
    openapi: OpenApi
    simulation: Simulation | None
    hostname: str
    identity: str
    """The name of this process among the API servers of the cluster."""
    flow_control: FlowController | MaxInFlight
    aggregation: AggregationProxy
    peer_leases: AddressLeases
    """Where the servers on this store find each other."""
    peers: Peers | None
    clock: Clock
    """The time of what makes the cluster move."""
    metrics: Registry

    def store(self, group: str, resource: str) -> Store:
        """The store of a resource at v1."""
        return self.storage.store(group, "v1", resource)

    def serves(self, group: str) -> bool:
        """Whether v1 of a group is served."""
        return any(GroupVersion(group, "v1") in server.versions for server in self.servers.aggregator.chain())

    def caches_error(self) -> str:
        """What is wrong with the watch caches, from which everything is read; nothing if they follow the store."""
        return "" if self.stack.cacher.is_open else "the watch caches do not follow the store"

    @property
    def peer_address(self) -> str:
        """Where other API servers reach this one."""
        flags = self.options.control_plane
        if flags.peer_advertise_ip and flags.peer_advertise_port:
            return _join(flags.peer_advertise_ip, flags.peer_advertise_port)
        return _join(self.options.generic.advertise_address, str(self.options.secure_serving.secure_port))


Declare = Callable[[HookContext], Iterable[PostStartHook]]
"""What a controller offers to the list: its hooks, or none where the flags do not want it."""


def _join(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
