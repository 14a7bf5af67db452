"""Ranges of service addresses: ready when they are there, kept by a finalizer while an address needs them."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time, parse_time

_ACCOUNT: Final = "service-cidrs-controller"
_NAME: Final = "service-cidr-controller"
_FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
_MANAGED_BY: Final = ("ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io")
_GRACE_SECONDS: Final = 10.0
_IN_USE: Final = (
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def start(context: ControllerContext) -> None:
    """Start the controller."""
    ServiceCidrs(context).controller.start(context.supervisor)


class ServiceCidrs:
    """Keeps finalizers and conditions."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._cidrs = context.informers.of("networking.k8s.io", "v1", "servicecidrs")
        self._addresses = context.informers.of("networking.k8s.io", "v1", "ipaddresses")
        self._client = context.client(_ACCOUNT).of("networking.k8s.io", "v1", "servicecidrs")
        self.controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, wait_for=[self._cidrs, self._addresses], clock=context.clock
        )
        add = self.controller.queue.add
        self._cidrs.add_handler(self._cidr_seen, lambda old, new: add(key_of(new)), self._cidr_seen, name=_NAME)
        self._addresses.add_handler(self._address_seen, on_delete=self._address_seen, name=_NAME)

    def _cidr_seen(self, cidr: Object) -> None:
        """A range that comes or goes can free another of its addresses, or leave them to it."""
        own = networks_of(cidr)
        for other in self._cidrs.lister.list():
            if any(each.overlaps(mine) for each in networks_of(other) for mine in own if each.version == mine.version):
                self.controller.queue.add(key_of(other))

    def _address_seen(self, address: Object) -> None:
        if _is_allocated(address):
            for cidr in containing(self._cidrs.lister.list(), ip_address(address["metadata"]["name"])):
                self.controller.queue.add(key_of(cidr))

    async def _reconcile(self, key: Key) -> float | None:
        cidr = self._cidrs.lister.get(*key)
        if cidr is None:
            return None
        try:
            if cidr["metadata"].get("deletionTimestamp"):
                return await self._let_go(cidr)
            if _FINALIZER not in (cidr["metadata"].get("finalizers") or ()):
                await self._client.patch(*key, {"metadata": {"finalizers": [_FINALIZER]}}, "strategic")
            await self._set_ready(cidr, "True", "", "Kubernetes Service CIDR is ready")
        except errors.NotFound:
            return None
        return None

    async def _let_go(self, cidr: Object) -> float | None:
        allocated = [each["metadata"]["name"] for each in self._addresses.lister.list() if _is_allocated(each)]
        if not may_go(cidr, self._cidrs.lister.list(), map(ip_address, allocated)):
            await self._set_ready(cidr, "False", "Terminating", _IN_USE)
            return None
        # Allocators of other servers may not know of the deletion yet.
        left = _GRACE_SECONDS - self._clock.now().since(parse_time(cidr["metadata"]["deletionTimestamp"]))
        if left > 0:
            return left
        if _FINALIZER in (cidr["metadata"].get("finalizers") or ()):
            gone = {"$deleteFromPrimitiveList/finalizers": [_FINALIZER]}
            await self._client.patch("", cidr["metadata"]["name"], {"metadata": gone}, "strategic")
        return None

    async def _set_ready(self, cidr: Object, status: str, reason: str, message: str) -> None:
        known = condition_of(cidr, "Ready") or {}
        if (known.get("status"), known.get("reason") or "", known.get("message")) == (status, reason, message):
            return
        condition = {
            "type": "Ready",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": format_time(self._clock.now()),
        }
        applied = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": cidr["metadata"]["name"]},
            "status": {"conditions": [condition]},
        }
        await self._client.apply(applied, _NAME, force=True, subresource="status")


def networks_of(cidr: Object) -> list[Network]:
    """The ranges of a ServiceCIDR."""
    return [ip_network(each) for each in cidr["spec"].get("cidrs") or ()]


def containing(cidrs: Iterable[Object], address: Address) -> list[Object]:
    """The ServiceCIDRs that an address is in."""
    return [cidr for cidr in cidrs if any(address in network for network in networks_of(cidr))]


def may_go(cidr: Object, cidrs: list[Object], allocated: Iterable[Address]) -> bool:
    """Whether every address in use is in another range too, or the whole range is in another one.

    Ranges that are being deleted must not all rely on each other: an earlier one does not count for a later one.
    """
    own = networks_of(cidr)
    others = [network for each in cidrs if _stays_longer(each, cidr) for network in networks_of(each)]
    if all(any(_is_within(network, other) for other in others) for network in own):
        return True
    return not any(
        any(address in network for network in own) and not any(address in network for network in others)
        for address in allocated
    )


def _stays_longer(other: Object, cidr: Object) -> bool:
    going = other["metadata"].get("deletionTimestamp")
    if not going:
        return bool(other["metadata"]["name"] != cidr["metadata"]["name"])
    since = cidr["metadata"].get("deletionTimestamp") or ""
    return bool((going, other["metadata"]["name"]) > (since, cidr["metadata"]["name"]))


def _is_within(network: Network, other: Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(other, IPv4Network):
        return network.subnet_of(other)
    return isinstance(network, IPv6Network) and isinstance(other, IPv6Network) and network.subnet_of(other)


def _is_allocated(address: Object) -> bool:
    name, value = _MANAGED_BY
    return bool((address["metadata"].get("labels") or {}).get(name) == value)
