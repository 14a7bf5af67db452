"""IP addresses and address blocks."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.types import Type, opaque
from pilothouse.cel.values import fail
from pilothouse.machinery.go_quote import quote

IP_TYPE = opaque("net.IP")
CIDR_TYPE = opaque("net.CIDR")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
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


def _parse_address(text: str) -> tuple[IPv4Address | IPv6Address, bool]:
    """Read an address, complaining about the same place of it as kube-apiserver; tell whether it names a zone."""
    first = next((char for char in text if char in ".:%"), "")
    if first == ".":
        return IPv4Address(_parse_v4(text, text)), False
    if first == ":":
        return _parse_v6(text)
    raise _complaint(text, "missing IPv6 address" if first else "unable to parse IP")


def _complaint(text: str, message: str, rest: str = "") -> _AddressError:
    place = f" (at {quote(rest)})" if rest else ""
    return _AddressError(f"ParseAddr({quote(text)}): {message}{place}")


def _parse_v4(text: str, part: str) -> bytes:
    fields = part.split(".")
    start = 0
    for position, field in enumerate(fields):
        _check_octet(text, part, start, field)
        if position == 3 and len(fields) > 4:
            raise _complaint(text, "IPv4 address too long")
        start += len(field) + 1
    if len(fields) < 4:
        raise _complaint(text, "IPv4 address too short")
    return bytes(map(int, fields))


def _check_octet(text: str, part: str, start: int, field: str) -> None:
    value = 0
    for index, char in enumerate(field):
        if not "0" <= char <= "9":
            raise _complaint(text, "unexpected character", part[start + index :])
        if index == 1 and value == 0:
            raise _complaint(text, "IPv4 field has octet with leading zero")
        value = value * 10 + int(char)
        if value > 255:
            raise _complaint(text, "IPv4 field has value >255")
    dot = start + len(field)
    if not field:
        raise _complaint(text, "IPv4 field must have at least one digit", part[min(start, len(part) - 1) :])
    if dot == len(part) - 1:
        raise _complaint(text, "IPv4 field must have at least one digit", part[dot:])


def _parse_v6(text: str) -> tuple[IPv6Address, bool]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _complaint(text, "zone must be a non-empty string")
    packed = bytearray()
    gap = -1
    if rest.startswith("::"):
        gap, rest = 0, rest[2:]
    while rest and len(packed) < 16:
        digits = _hexadecimal_group(text, rest)
        if rest[digits : digits + 1] == ".":
            if gap < 0 and len(packed) != 12:
                raise _complaint(text, "embedded IPv4 address must replace the final 2 fields of the address", rest)
            if len(packed) > 12:
                raise _complaint(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            packed += _parse_v4(text, rest)
            rest = ""
            break
        packed += int(rest[:digits], 16).to_bytes(2, "big")
        rest, opened = _next_group(text, rest[digits:], gap >= 0)
        if opened:
            gap = len(packed)
    if rest:
        raise _complaint(text, "trailing garbage after address", rest)
    return IPv6Address(_spread(text, bytes(packed), gap)), bool(zone)


def _hexadecimal_group(text: str, rest: str) -> int:
    digits = next((index for index, char in enumerate(rest) if char not in _HEXADECIMAL), len(rest))
    if digits > 4:
        raise _complaint(text, "each group must have 4 or less digits", rest)
    if digits == 0:
        raise _complaint(text, "each colon-separated field must have at least one digit", rest)
    return digits


def _next_group(text: str, rest: str, has_gap: bool) -> tuple[str, bool]:
    """Step over the colon after a group; tell what follows and whether `::` stood here."""
    if not rest:
        return "", False
    if rest[0] != ":":
        raise _complaint(text, "unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _complaint(text, "colon must be followed by more characters", rest)
    if rest[1] != ":":
        return rest[1:], False
    if has_gap:
        raise _complaint(text, "multiple :: in address", rest[1:])
    return rest[2:], True


def _spread(text: str, packed: bytes, gap: int) -> bytes:
    if len(packed) < 16:
        if gap < 0:
            raise _complaint(text, "address string too short")
        return packed[:gap] + bytes(16 - len(packed)) + packed[gap:]
    if gap >= 0:
        raise _complaint(text, "the :: must expand to at least one field of zeros")
    return packed


def _checked_address(text: str) -> IPv4Address | IPv6Address:
    try:
        address, zoned = _parse_address(text)
    except _AddressError as error:
        raise _AddressError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if zoned:
        raise _AddressError(f"IP address {quote(text)} with zone value is not allowed")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise _AddressError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return address


def _parse_cidr(text: str) -> Cidr:
    prefix = "network address parse error during conversion from string: "
    head, slash, bits = text.rpartition("/")
    shown = f"netip.ParsePrefix({quote(text)}): "
    if not slash:
        raise _AddressError(f"{prefix}{shown}no '/'")
    try:
        address, zoned = _parse_address(head)
    except _AddressError as error:
        raise _AddressError(f"{prefix}{shown}{error}") from None
    if zoned:
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
    if isinstance(other, str):
        if not _is_ip(other):
            fail("no such overload")
        other = _to_ip(other)
    ip = other
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
