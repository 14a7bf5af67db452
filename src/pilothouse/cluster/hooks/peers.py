"""Peers: who they are, what they serve, and what of it is asked of them. Only where ``--peer-ca-file`` is given."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cluster.hooks.hook import HookContext, PostStartHook
from pilothouse.controlplane.bootstrap.identity_lease import NAMESPACE, is_identity_lease
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.supervision import Supervisor


def proxying(context: HookContext) -> Iterator[PostStartHook]:
    """Leases and exclusions are known before the server is ready; peers are asked from then on."""
    peers = context.peers
    if peers is None:
        return
    from pilothouse.aggregator.peers.discovery import PeerDiscovery
    from pilothouse.aggregator.peers.exclusions import Exclusions

    leases = context.informers.of("coordination.k8s.io", "v1", "leases", NAMESPACE)
    exclusions = Exclusions(context.informers, peers.apis.exclude)
    discovery = PeerDiscovery(context.identity, leases, is_identity_lease, peers.proxy, peers.apis)

    async def synced(supervisor: Supervisor) -> None:
        await leases.wait_synced()
        await exclusions.wait_synced()

    async def nothing(supervisor: Supervisor) -> None:
        """What is served here is known from the start."""

    def misrouted() -> str:
        return peers.apis.misrouted(_served(context))

    async def work(supervisor: Supervisor) -> None:
        exclusions.start(supervisor)
        discovery.start(supervisor)

    yield PostStartHook(
        "mixed-version-proxy-handler",
        "the informer of server Leases, and of what peers are not asked for",
        synced,
        leases.errors,
    )
    yield PostStartHook("local-discovery-cache-sync", "the table of what is served here", nothing, misrouted)
    yield PostStartHook("peer-discovery-workers", "the controllers that ask peers what they serve", work)


def _served(context: HookContext) -> set[GroupVersionResource]:
    return {
        GroupVersionResource(*version.version.group_version, row.name)
        for server in context.servers.aggregator.chain()
        for version in server.versions.values()
        for row in version.version.resources
    }
