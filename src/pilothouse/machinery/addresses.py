"""IP addresses and CIDR blocks, with the messages and warnings kube-apiserver gives for them.

Older fields accept forms that newer ones refuse: leading zeros (read as decimal), IPv4-mapped IPv6, blocks with bits
set beyond the prefix. Everything is parsed by the lenient rules first; the strict checks then look at what was lenient
about the text. A mapped address prints as IPv4, as in Go.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from pilothouse.machinery.go_quote import quote

_IP_MESSAGE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR_MESSAGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_INTERFACE_MESSAGE: Final = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"

_IPV4 = re.compile(r"0*([0-9]{1,3})\.0*([0-9]{1,3})\.0*([0-9]{1,3})\.0*([0-9]{1,3})")
_GROUP = re.compile(r"0*[0-9A-Fa-f]{1,4}")
_PREFIX = re.compile(r"0*([0-9]{1,3})")
_LEADING_ZERO = re.compile(r"(?:^|[.:])0[0-9]+(?:\.|$)")


class Address(NamedTuple):
    """A parsed address: its number, its width in bits as written, and whether only lenient rules accept it."""

    number: int
    bits: int
    lenient: bool

    @property
    def mapped(self) -> bool:
        """Whether it is an IPv4 address written as IPv6."""
        return self.bits == 128 and self.number >> 32 == 0xFFFF

    @property
    def is_ipv4(self) -> bool:
        return self.bits == 32 or self.mapped

    def __str__(self) -> str:
        if self.is_ipv4:
            return ".".join(str(self.number >> shift & 0xFF) for shift in (24, 16, 8, 0))
        return _format_ipv6(self.number)


class Block(NamedTuple):
    """A parsed CIDR value: the address as written and the length of its prefix."""

    address: Address
    prefix: int
    lenient: bool

    @property
    def network(self) -> Address:
        rest = self.address.bits - self.prefix
        return self.address._replace(number=self.address.number >> rest << rest)

    def __str__(self) -> str:
        network = self.network
        return f"{network}/{self.prefix - 96 if network.mapped else self.prefix}"


def parse_ip(text: str) -> Address | None:
    """Read an address by the lenient rules; None if it is none."""
    number = _parse_ipv4(text)
    if number is not None:
        return Address(number, 32, _LEADING_ZERO.search(text) is not None)
    if ":" not in text:
        return None
    return _parse_ipv6(text)


def parse_cidr(text: str) -> Block | None:
    """Read a block by the lenient rules; None if it is none."""
    head, slash, tail = text.partition("/")
    address = parse_ip(head) if slash else None
    prefix = _PREFIX.fullmatch(tail)
    if address is None or prefix is None or int(prefix[1]) > address.bits:
        return None
    return Block(address, int(prefix[1]), address.lenient or (len(tail) > 1 and tail[0] == "0"))


def _parse_ipv4(text: str) -> int | None:
    match = _IPV4.fullmatch(text)
    if match is None:
        return None
    number = 0
    for octet in map(int, match.groups()):
        if octet > 255:
            return None
        number = number << 8 | octet
    return number


def _parse_ipv6(text: str) -> Address | None:
    head, ellipsis, tail = text.partition("::")
    lenient = False
    if "." in text:
        front, _, last = text.rpartition(":")
        quad = _parse_ipv4(last)
        if quad is None:
            return None
        lenient = _LEADING_ZERO.search(last) is not None
        text = f"{front}:{quad >> 16:x}:{quad & 0xFFFF:x}"
        head, ellipsis, tail = text.partition("::")
    left = head.split(":") if head else []
    right = tail.split(":") if tail else []
    groups = left + right
    if len(groups) > 7 if ellipsis else len(groups) != 8:
        return None
    if not all(map(_GROUP.fullmatch, groups)):
        return None
    lenient = lenient or any(len(group) > 4 for group in groups)
    number = 0
    for group in left + ["0"] * (8 - len(groups)) + right:
        number = number << 16 | int(group, 16)
    return Address(number, 128, lenient)


def _format_ipv6(number: int) -> str:
    groups = [number >> shift & 0xFFFF for shift in range(112, -1, -16)]
    start, length = 0, 1
    at = 0
    while at < 8:
        end = at
        while end < 8 and not groups[end]:
            end += 1
        if end - at > length:
            start, length = at, end - at
        at = max(end, at + 1)
    texts = [f"{group:x}" for group in groups]
    if length == 1:
        return ":".join(texts)
    return ":".join(texts[:start]) + "::" + ":".join(texts[start + length :])


def check_ip(text: str) -> list[str]:
    """Addresses of newer fields: canonical form only."""
    messages = check_legacy_ip(text)
    if messages:
        return messages
    canonical = str(parse_ip(text))
    return [] if text == canonical else [f"must be in canonical form ({quote(canonical)})"]


def check_legacy_ip(text: str, strict: bool = True) -> list[str]:
    """Addresses of older fields: any form, or with ``strict`` any unambiguous one."""
    address = parse_ip(text)
    if address is None:
        return [_IP_MESSAGE]
    if not strict:
        return []
    if address.lenient:
        return ["must not have leading 0s"]
    return ["must not be an IPv4-mapped IPv6 address"] if address.mapped else []


def warn_about_ip(field: str, text: str) -> list[str]:
    """Warnings for an older field that was accepted: what the newer rules would refuse or rewrite."""
    address = parse_ip(text)
    if address is None:
        return []
    canonical = str(address)
    if address.lenient or address.mapped:
        return [f"{field}: non-standard IP address {quote(text)} is invalid: use {quote(canonical)}"]
    if address.bits == 128 and canonical != text:
        return [f"{field}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({quote(canonical)})"]
    return []


def check_cidr(text: str) -> list[str]:
    """Blocks of newer fields: canonical form only."""
    messages = check_legacy_cidr(text)
    if messages:
        return messages
    canonical = str(parse_cidr(text))
    return [] if text == canonical else [f"must be in canonical form ({quote(canonical)})"]


def check_legacy_cidr(text: str, strict: bool = True) -> list[str]:
    """Blocks of older fields: any form, or with ``strict`` any unambiguous one."""
    block = parse_cidr(text)
    if block is None:
        return [_CIDR_MESSAGE]
    if not strict:
        return []
    if block.lenient:
        return ["must not have leading 0s in IP or prefix length"]
    if block.address.mapped:
        return ["must not have an IPv4-mapped IPv6 address"]
    if block.address.number != block.network.number:
        return ["must not have bits set beyond the prefix length"]
    return []


def warn_about_cidr(field: str, text: str) -> list[str]:
    """Warnings for an older field that was accepted: what is ambiguous or not canonical about it."""
    block = parse_cidr(text)
    if block is None:
        return []
    warnings = []
    if block.address.number != block.network.number:
        single = f"{block.address}/{block.address.bits}"
        warnings.append(
            f"{field}: CIDR value {quote(text)} is ambiguous in this context"
            f" (should be {quote(str(block))} or {quote(single)}?)"
        )
    if block.lenient or block.address.mapped:
        warnings.append(f"{field}: non-standard CIDR value {quote(text)} is invalid: use {quote(str(block))}")
    canonical = f"{block.address}/{block.prefix}"
    if not warnings and block.address.bits == 128 and canonical != text:
        warnings.append(
            f"{field}: IPv6 CIDR value {quote(text)} should be in RFC 5952 canonical format ({quote(canonical)})"
        )
    return warnings


def check_interface_address(text: str) -> list[str]:
    """Addresses with the length of their network's prefix, in canonical form."""
    block = parse_cidr(text)
    if block is None:
        return [_INTERFACE_MESSAGE]
    prefix = block.prefix - 96 if block.address.mapped and block.prefix > 32 else block.prefix
    canonical = f"{block.address}/{prefix}"
    return [] if text == canonical else [f"must be in canonical form ({quote(canonical)})"]
