"""Addresses of simulated nodes and pods: of nodes by their number, of pods from their node's own range."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from typing import Final

_NODES: Final = IPv4Network("10.240.0.0/14")
_RANGES: Final = IPv4Network("10.128.0.0/10")


def node_address(number: int) -> str:
    """The address of a node."""
    return str(_NODES[number + 2])


class PodAddresses:
    """Hands out the addresses of one node's range, again only when all others have been used."""

    def __init__(self, pod_cidr: str, number: int) -> None:
        self._range: IPv4Network | IPv6Network = ip_network(pod_cidr) if pod_cidr else _default_range(number)
        self._size = min(self._range.num_addresses - 2, 1 << 16)
        self._taken: dict[str, str] = {}
        self._used: Counter[str] = Counter()
        """How many pods have an address: more than one where there are too few, or a pod says so itself."""
        self._next = 1

    def address_of(self, uid: str, known: str = "") -> str:
        """The address of a pod: the one that it is known by, or a free one."""
        if uid not in self._taken:
            address = self._taken[uid] = known or self._free()
            self._used[address] += 1
        return self._taken[uid]

    def release(self, uid: str) -> None:
        """The pod has gone."""
        address = self._taken.pop(uid, None)
        if address is not None:
            self._used[address] -= 1
            if not self._used[address]:
                del self._used[address]

    def _free(self) -> str:
        if len(self._used) < self._size:
            for _ in range(self._size):
                self._next = self._next % self._size + 1
                address = str(self._range[self._next])
                if address not in self._used:
                    return address
        return str(self._range[1])


def _default_range(number: int) -> IPv4Network:
    return IPv4Network((int(_RANGES.network_address) + (number << 8), 24))


def is_node_address(address: str) -> bool:
    """Whether an address is one of a simulated node."""
    return _is_in(address, _NODES)


def is_pod_address(address: str) -> bool:
    """Whether an address is one that simulated pods have where nodes have no ranges of their own."""
    return _is_in(address, _RANGES)


def _is_in(address: str, network: IPv4Network) -> bool:
    try:
        return IPv4Address(address) in network
    except ValueError:
        return False
