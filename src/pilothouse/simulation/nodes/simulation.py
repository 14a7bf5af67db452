"""What the simulated nodes of a cluster share: settings, what clients read from pods, and the way to the kubelets."""

from __future__ import annotations

import ssl

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing.dialer import Dialer, Route
from pilothouse.simulation.kubelet_api.server import KubeletServer
from pilothouse.simulation.kubelet_api.streams import connect_echo
from pilothouse.simulation.nodes.pool import NodePool, PoolSettings
from pilothouse.simulation.nodes.route import FindPort, SimulatedRoute
from pilothouse.simulation.nodes.streams import SimulatedStreams


class Simulation:
    """Simulated nodes before they are started. ``dialer`` leads to their kubelets, and everywhere else as before."""

    def __init__(
        self,
        settings: PoolSettings,
        dialer: Dialer,
        cert_file: str,
        key_file: str,
        *,
        run_commands: bool,
        elsewhere: FindPort | None = None,
    ) -> None:
        """``elsewhere`` tells where the kubelets listen that another process has; such nodes are not started here."""
        self.settings = settings
        self._streams = SimulatedStreams(run_commands=run_commands)
        self._certificate = (cert_file, key_file)
        self._kubelet = KubeletServer(self._context, self._streams.log_of, self._streams.run, connect=connect_echo)
        self._find_port = elsewhere or self.kubelet_port
        self.dialer = dialer.detour(self._lead)

    def _lead(self, route: Route) -> Route:
        return SimulatedRoute(self.settings.names(), self._find_port, route)

    async def kubelet_port(self) -> int:
        """Where on loopback the kubelets listen, which they begin to do now if they did not."""
        self._kubelet.start()
        return self._kubelet.port

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._certificate)
        return context

    async def start(
        self, clients: LoopbackClients, informers: InformerFactory, supervisor: Supervisor, clock: Clock
    ) -> None:
        """Register the nodes and begin to play pods."""
        await NodePool(self.settings, clients, informers, supervisor, self._streams, clock=clock).start()

    async def close(self) -> None:
        """End streams to and from pods."""
        await self._kubelet.close()
        await self.dialer.close()
