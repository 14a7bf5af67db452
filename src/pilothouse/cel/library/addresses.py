"""IP addresses and address blocks."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NoReturn

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import Type, opaque
from pilothouse.cel.values import fail
from pilothouse.machinery.go_quote import quote

IP_TYPE = opaque("net.IP")
CIDR_TYPE = opaque("net.CIDR")
_BITS = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")
_LINK_LOCAL_V4 = ip_network("224.0.0.0/24")


class Ip:
    """An address inside an expression."""

    __slots__ = ("address",)
    cel_type = IP_TYPE

    def __init__(self, address: IPv4Address | IPv6Address) -> None:
        self.address = address

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ip) and other.address == self.address

    def __hash__(self) -> int:
        return hash(self.address)

    def cel_size(self) -> int:
        return self.address.max_prefixlen // 8

    def cel_string(self) -> str:
        return str(self.address)


class Cidr:
    """An address with the length of its network's prefix."""

    __slots__ = ("address", "bits")
    cel_type = CIDR_TYPE

    def __init__(self, address: IPv4Address | IPv6Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cidr) and (other.address, other.bits) == (self.address, self.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))

    def network(self, bits: int) -> IPv4Network | IPv6Network:
        return ip_network((str(self.address), bits), strict=False)

    def cel_size(self) -> int:
        return -(-self.bits // 8)

    def cel_string(self) -> str:
        return f"{self.address}/{self.bits}"


class _AddressError(Exception):
    """The text is no address."""


def _refuse_address(text: str) -> NoReturn:
    raise _AddressError(f"ParseAddr({quote(text)}): {_complaint(text)}")


def _complaint(text: str) -> str:
    first = next((char for char in text if char in ".:%"), "")
    if first == "%":
        return "missing IPv6 address"
    if first != ".":
        return "unable to parse IP"
    fields = text.split(".")
    for position, field in enumerate(fields):
        stray = next((index for index, char in enumerate(field) if not "0" <= char <= "9"), None)
        if stray is not None:
            rest = ".".join([field[stray:], *fields[position + 1 :]])
            return f"unexpected character (at {quote(rest)})"
        if not field:
            rest = ".".join(fields[position:]) or text[-1:]
            return f"IPv4 field must have at least one digit (at {quote(rest)})"
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if int(field[:4]) > 255:
            return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _parse_address(text: str) -> IPv4Address | IPv6Address:
    if len(text) > 100:
        _refuse_address(text)
    try:
        return ip_address(text)
    except (AddressValueError, ValueError):
        _refuse_address(text)


def _checked_address(text: str) -> IPv4Address | IPv6Address:
    try:
        address = _parse_address(text)
    except _AddressError as error:
        raise _AddressError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise _AddressError(f"IP address {quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise _AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _parse_cidr(text: str) -> Cidr:
    prefix = "network address parse error during conversion from string: "
    head, slash, bits = text.rpartition("/")
    shown = f"netip.ParsePrefix({quote(text)}): "
    if not slash:
        raise _AddressError(f"{prefix}{shown}no '/'")
    try:
        address = _parse_address(head)
    except _AddressError as error:
        raise _AddressError(f"{prefix}{shown}{error}") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise _AddressError(f"{prefix}{shown}IPv6 zones cannot be present in a prefix")
    if not _BITS.match(bits):
        raise _AddressError(f"{prefix}{shown}bad bits after slash: {quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise _AddressError(f"{prefix}{shown}prefix length out of range")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise _AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return Cidr(address, int(bits))


def _to_ip(text: str) -> Ip:
    try:
        return Ip(_checked_address(text))
    except _AddressError as error:
        return fail(str(error))


def _is_ip(text: str) -> bool:
    try:
        _checked_address(text)
    except _AddressError:
        return False
    return True


def _to_cidr(text: str) -> Cidr:
    try:
        return _parse_cidr(text)
    except _AddressError as error:
        return fail(f"network address parse error during conversion from string: {error}")


def _is_cidr(text: str) -> bool:
    try:
        _parse_cidr(text)
    except _AddressError:
        return False
    return True


def _is_link_local_multicast(ip: Ip) -> bool:
    if isinstance(ip.address, IPv4Address):
        return ip.address in _LINK_LOCAL_V4
    return ip.address.packed[0] == 0xFF and ip.address.packed[1] & 0x0F == 0x02


def _is_link_local_unicast(ip: Ip) -> bool:
    return ip.address.is_link_local


def _is_global_unicast(ip: Ip) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


def _contains_ip(cidr: Cidr, other: Ip | str) -> bool:
    ip = _to_ip(other) if isinstance(other, str) else other
    return ip.address.version == cidr.address.version and ip.address in cidr.network(cidr.bits)


def _contains_cidr(cidr: Cidr, other: Cidr | str) -> bool:
    block = _to_cidr(other) if isinstance(other, str) else other
    if block.address.version != cidr.address.version or cidr.bits > block.bits:
        return False
    return cidr.network(cidr.bits) == block.network(cidr.bits)


def _masked(cidr: Cidr) -> Cidr:
    return Cidr(cidr.network(cidr.bits).network_address, cidr.bits)


def _test(name: str, word: str, implementation: object) -> Function:
    return Function(name, [Overload(f"ip_{word}", "!net.IP.() -> bool", implementation)])  # type: ignore[arg-type]


_TYPES: tuple[Type, ...] = (IP_TYPE, CIDR_TYPE)
IP_LIBRARY = Library(
    (
        Function("ip", [Overload("string_to_ip", "(string) -> !net.IP", _to_ip)]),
        Function("family", [Overload("ip_family", "!net.IP.() -> int", lambda ip: ip.address.version)]),
        Function(
            "ip.isCanonical",
            [Overload("ip_is_canonical", "(string) -> bool", lambda text: str(_to_ip(text).address) == text)],
        ),
        _test("isUnspecified", "is_unspecified", lambda ip: ip.address.is_unspecified),
        _test("isLoopback", "is_loopback", lambda ip: ip.address.is_loopback),
        _test("isLinkLocalMulticast", "is_link_local_multicast", _is_link_local_multicast),
        _test("isLinkLocalUnicast", "is_link_local_unicast", _is_link_local_unicast),
        _test("isGlobalUnicast", "is_global_unicast", _is_global_unicast),
        Function("isIP", [Overload("is_ip", "(string) -> bool", _is_ip)]),
        Function("string", [Overload("ip_to_string", "(!net.IP) -> string", Ip.cel_string)]),
    ),
    types=_TYPES[:1],
)
CIDR_LIBRARY = Library(
    (
        Function("cidr", [Overload("string_to_cidr", "(string) -> !net.CIDR", _to_cidr)]),
        Function(
            "containsIP",
            [
                Overload("cidr_contains_ip_string", "!net.CIDR.(string) -> bool", _contains_ip),
                Overload("cidr_contains_ip_ip", "!net.CIDR.(!net.IP) -> bool", _contains_ip),
            ],
        ),
        Function(
            "containsCIDR",
            [
                Overload("cidr_contains_cidr_string", "!net.CIDR.(string) -> bool", _contains_cidr),
                Overload("cidr_contains_cidr", "!net.CIDR.(!net.CIDR) -> bool", _contains_cidr),
            ],
        ),
        Function("ip", [Overload("cidr_ip", "!net.CIDR.() -> !net.IP", lambda cidr: Ip(cidr.address))]),
        Function("prefixLength", [Overload("cidr_prefix_length", "!net.CIDR.() -> int", lambda cidr: cidr.bits)]),
        Function("masked", [Overload("cidr_masked", "!net.CIDR.() -> !net.CIDR", _masked)]),
        Function("isCIDR", [Overload("is_cidr", "(string) -> bool", _is_cidr)]),
        Function("string", [Overload("cidr_to_string", "(!net.CIDR) -> string", Cidr.cel_string)]),
    ),
    types=_TYPES[1:],
)
