"""Which way connections of each kind take: to the cluster, within the control plane, or to etcd."""

from __future__ import annotations

from dataclasses import dataclass, field

from pilothouse.net.dialing.dialer import Dialer


@dataclass(frozen=True, slots=True)
class Egress:
    """One dialer for each kind of traffic. Closed once, when the server stops."""

    cluster: Dialer = field(default_factory=Dialer)
    """To nodes, pods and services: kubelets, proxies, aggregated servers, webhooks that are services."""
    control_plane: Dialer = field(default_factory=Dialer)
    """To what stands beside this server: webhooks by URL, authenticators and authorizers, issuers."""
    etcd: Dialer = field(default_factory=Dialer)

    async def close(self) -> None:
        """Give up all tunnels."""
        for dialer in (self.cluster, self.control_plane, self.etcd):
            await dialer.close()
