"""The way to simulated nodes: their kubelets are one server of this process, which begins when it is first needed.

Addresses of simulated pods lead nowhere: there is nothing behind them, and who asks is told at once.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Collection

from pilothouse.net.dialing.dialer import DIRECT, Route
from pilothouse.net.dialing.failures import DialError, join_host_port
from pilothouse.net.dialing.guard import Guard
from pilothouse.simulation.kubelet_api.server import KubeletServer
from pilothouse.simulation.kubelet_api.streams import connect_echo
from pilothouse.simulation.nodes.addresses import is_node_address, is_pod_address
from pilothouse.simulation.nodes.streams import SimulatedStreams


class SimulatedRoute:
    """Leads to the simulated kubelets, and for all else another way."""

    def __init__(
        self,
        names: Collection[str],
        streams: SimulatedStreams,
        context: Callable[[], ssl.SSLContext],
        behind: Route = DIRECT,
    ) -> None:
        self._names, self._behind = frozenset(names), behind
        self._kubelet = KubeletServer(context, streams.log_of, streams.run, connect=connect_echo)

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        """A connected socket that does not block. Raises DialError."""
        if host in self._names or is_node_address(host):
            self._kubelet.start()
            return await DIRECT.open("127.0.0.1", self._kubelet.port, None)
        if is_pod_address(host):
            raise DialError(
                f"dial tcp {join_host_port(host, port)}: connect: connection refused (the pod is simulated)"
            )
        return await self._behind.open(host, port, guard)

    async def close(self) -> None:
        """End the kubelets' streams."""
        await self._kubelet.close()
        await self._behind.close()
