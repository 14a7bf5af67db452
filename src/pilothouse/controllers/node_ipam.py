"""Every node gets a range of pod addresses of its own, out of the cluster's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_NAME: Final = "node-ipam-controller"
_ACCOUNT: Final = "node-controller"
Network = IPv4Network | IPv6Network


def start(context: ControllerContext) -> None:
    """Start the controller."""
    NodeRanges(context).start(context.supervisor)


class NodeRanges:
    """Hands out one range of each network to each node, and takes them back when the node has gone."""

    def __init__(self, context: ControllerContext) -> None:
        settings = context.settings
        self._networks = settings.cluster_networks
        self._masks = {4: settings.node_mask, 6: settings.node_mask_ipv6}
        self._nodes = context.informers.of("", "v1", "nodes")
        self._client = context.client(_ACCOUNT).of("", "v1", "nodes")
        self._events = context.recorder(_NAME, _ACCOUNT)
        self._taken: dict[Network, str] = {}
        self._chosen: dict[str, list[Network]] = {}
        """What was chosen for nodes and is not seen there yet."""
        self._free = [self._subnets(network) for network in self._networks]
        self._returned: list[list[Network]] = [[] for _ in self._networks]
        self._controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=30, wait_for=[self._nodes], clock=context.clock
        )
        self._nodes.add_handler(self._seen, lambda old, new: self._seen(new), self._gone, name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to hand out ranges."""
        self._controller.start(supervisor)

    def _subnets(self, network: Network) -> Iterator[Network]:
        return iter(network.subnets(new_prefix=max(self._masks[network.version], network.prefixlen)))

    def _seen(self, node: Object) -> None:
        ranges = node["spec"].get("podCIDRs") or ()
        for each in ranges:
            self._taken[ip_network(each)] = node["metadata"]["name"]
        if ranges:
            self._chosen.pop(node["metadata"]["name"], None)
        else:
            self._controller.queue.add(key_of(node))

    def _gone(self, node: Object) -> None:
        chosen = self._chosen.pop(node["metadata"]["name"], [])
        for network in {*map(ip_network, node["spec"].get("podCIDRs") or ()), *chosen}:
            self._taken.pop(network, None)
            for index, whole in enumerate(self._networks):
                if network.version == whole.version:
                    self._returned[index].append(network)

    async def _reconcile(self, key: Key) -> None:
        node = self._nodes.lister.get(*key)
        if node is None or node["spec"].get("podCIDRs"):
            return
        chosen = self._choose(key[1])
        if chosen is None:
            text = f"Node {key[1]} status is now: CIDRNotAvailable"
            self._events.event(node, "Normal", "CIDRNotAvailable", text)
            return
        ranges = [str(each) for each in chosen]
        patch = {"spec": {"podCIDR": ranges[0], "podCIDRs": ranges}}
        with contextlib.suppress(errors.NotFound):
            await self._client.patch("", key[1], patch, "strategic")

    def _choose(self, name: str) -> list[Network] | None:
        """Ranges for a node: the same until it has them, however often it is asked for. None where there are none."""
        known = self._chosen.get(name)
        if known is not None:
            return known
        chosen = [self._take(index, name) for index in range(len(self._networks))]
        found = [each for each in chosen if each is not None]
        if len(found) < len(chosen):
            for index, each in enumerate(chosen):
                if each is not None:
                    del self._taken[each]
                    self._returned[index].append(each)
            return None
        self._chosen[name] = found
        return found

    def _take(self, index: int, name: str) -> Network | None:
        candidates = self._returned[index]
        while candidates:
            network = candidates.pop(0)
            if network not in self._taken:
                self._taken[network] = name
                return network
        for network in self._free[index]:
            if network not in self._taken:
                self._taken[network] = name
                return network
        return None
