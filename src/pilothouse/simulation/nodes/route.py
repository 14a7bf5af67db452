"""The way to simulated nodes: their kubelets are one server, of this process or of another one of ours.

Addresses of simulated pods lead nowhere: there is nothing behind them, and who asks is told at once.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Collection

from pilothouse.net.dialing.dialer import DIRECT, Route
from pilothouse.net.dialing.failures import DialError, join_host_port
from pilothouse.net.dialing.guard import Guard
from pilothouse.simulation.nodes.addresses import is_node_address, is_pod_address

FindPort = Callable[[], Awaitable[int]]
"""Tells where on loopback the kubelets listen."""


class SimulatedRoute:
    """Leads to the simulated kubelets, and for all else another way."""

    def __init__(self, names: Collection[str], find_port: FindPort, behind: Route = DIRECT) -> None:
        self._names, self._find_port, self._behind = frozenset(names), find_port, behind

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        """A connected socket that does not block. Raises DialError."""
        if host in self._names or is_node_address(host):
            try:
                kubelet = await self._find_port()
            except OSError as error:
                raise DialError(f"dial tcp {join_host_port(host, port)}: {error}") from None
            return await DIRECT.open("127.0.0.1", kubelet, None)
        if is_pod_address(host):
            raise DialError(
                f"dial tcp {join_host_port(host, port)}: connect: connection refused (the pod is simulated)"
            )
        return await self._behind.open(host, port, guard)

    async def close(self) -> None:
        """Close the way behind."""
        await self._behind.close()
