"""The chain of three servers: aggregator → built-in API → CRD extensions → not found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilothouse.aggregator.proxy import AggregationProxy
from pilothouse.aggregator.remote_discovery import RemoteDiscovery
from pilothouse.aggregator.server import RemoteApis, build_aggregator
from pilothouse.apiextensions.custom_resources import CustomResources
from pilothouse.apiextensions.server import build_extensions
from pilothouse.apis.resources import Version
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controlplane.server import build_control_plane
from pilothouse.endpoints.admission import Admission
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.installer import OwnVerbs, install_version
from pilothouse.endpoints.subresources.links import Links
from pilothouse.net.dialing.egress import Egress
from pilothouse.registry.service_routing import ServiceResolver
from pilothouse.registry.storage import StorageFactory
from pilothouse.server.discovery import ChainDiscovery
from pilothouse.server.generic import GenericAPIServer

if TYPE_CHECKING:
    from pilothouse.aggregator.peers.routing import Peers

_EXTENSIONS = "apiextensions.k8s.io"
_DEFINITIONS = "customresourcedefinitions"
_AGGREGATION = "apiregistration.k8s.io"


@dataclass(slots=True)
class ServerChain:
    """The servers, first to last, and what they serve together."""

    aggregator: GenericAPIServer
    control_plane: GenericAPIServer
    extensions: GenericAPIServer
    custom: CustomResources
    discovery: ChainDiscovery
    remotes: RemoteApis
    remote_discovery: RemoteDiscovery


def build_server_chain(
    storage: StorageFactory,
    enabled: list[Version],
    *,
    address: str,
    informers: InformerFactory,
    resolver: ServiceResolver,
    admission: Admission,
    own_verbs: OwnVerbs,
    guards: Mapping[str, Admission],
    links: Links,
    proxy: AggregationProxy,
    peers: Peers | None,
    egress: Egress,
    livez_grace_seconds: float,
) -> ServerChain:
    """Make the servers from the inside out, each delegating to the one before it.

    ``guards`` take the place of ``admission`` for single groups; ``links`` lead to nodes, pods and services, the
    ``proxy`` to aggregated servers, ``peers`` to the other servers on this store.
    """
    extensions = build_extensions(_own(enabled, _EXTENSIONS, storage, admission), livez_grace_seconds)
    built_in = [v for v in enabled if v.group not in (_EXTENSIONS, _AGGREGATION)]
    served = frozenset(v.group_version for v in enabled)
    installed = [
        install_version(v, storage.store_for, own_verbs, guards.get(v.group, admission), served, links)
        for v in built_in
    ]
    control_plane = build_control_plane(installed, extensions)
    remotes = RemoteApis(informers)
    own = _own(enabled, _AGGREGATION, storage, admission)
    aggregator = build_aggregator(own, control_plane, remotes, proxy, peers)
    discovery = ChainDiscovery(aggregator, lambda: address, peers=None if peers is None else peers.apis)
    if peers is not None:
        peers.apis.tell(discovery.peers_changed)
    discovery.install()
    remote_discovery = RemoteDiscovery(remotes, proxy, discovery.remote_changed)
    definitions = storage.store(_EXTENSIONS, "v1", _DEFINITIONS)
    custom = CustomResources(extensions, definitions, storage, informers, resolver, egress, admission=admission)
    custom.tell(discovery)
    return ServerChain(aggregator, control_plane, extensions, custom, discovery, remotes, remote_discovery)


def _own(
    enabled: list[Version], group: str, storage: StorageFactory, admission: Admission | None
) -> list[InstalledVersion]:
    own = (version for version in enabled if version.group == group)
    return [install_version(version, storage.store_for, admission=admission) for version in own]
