"""What the simulated nodes of a cluster share: settings, what clients read from pods, and the way to the kubelets."""

from __future__ import annotations

import ssl

from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.supervision import Supervisor
from pilothouse.net.dialing.dialer import Dialer, Route
from pilothouse.simulation.nodes.pool import NodePool, PoolSettings
from pilothouse.simulation.nodes.route import SimulatedRoute
from pilothouse.simulation.nodes.streams import SimulatedStreams


class Simulation:
    """Simulated nodes before they are started. ``dialer`` leads to their kubelets, and everywhere else as before."""

    def __init__(
        self, settings: PoolSettings, dialer: Dialer, cert_file: str, key_file: str, *, run_commands: bool
    ) -> None:
        self.settings = settings
        self._streams = SimulatedStreams(run_commands=run_commands)
        self._certificate = (cert_file, key_file)
        self.dialer = dialer.detour(self._lead)

    def _lead(self, route: Route) -> Route:
        return SimulatedRoute(self.settings.names(), self._streams, self._context, route)

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
        await self.dialer.close()
