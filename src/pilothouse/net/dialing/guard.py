"""Which addresses may be dialled on behalf of users.

Whoever may write a pod's or node's status could otherwise send the server, with its place in the network and its
certificates, to itself, to services of its machine, or to a cloud's metadata address. A guard is asked about every
address after names are resolved and right before connecting, so that no second resolution can slip in another one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final

Guard = Callable[[str], bool]
"""Whether an address (never a name) may be dialled."""
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")
_TRANSLATED: Final = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


def is_global_unicast(address: str) -> bool:
    """Whether an address is one of a single machine, and not just of this one or its link.

    IPv6 addresses that carry an IPv4 address (mapped, compatible, 6to4, NAT64) are what the address inside is.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inside = _embedded(ip)
        if inside is not None and not is_global_unicast(str(inside)):
            return False
    refused = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local or ip == _BROADCAST
    return not refused


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if any(ip in network for network in _TRANSLATED) or ip in _COMPATIBLE:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None
