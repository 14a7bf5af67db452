"""Checks that several core and networking kinds share: names, addresses, ports and quantities at a path.

Each takes where the value is and gives the errors; a sound value costs one call into ``machinery`` and an empty list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.machinery import addresses, names
from pilothouse.machinery.field_errors import FieldError, Path, internal, invalid, not_supported, required
from pilothouse.machinery.quantity import Quantity, parse

ZERO: Final = parse("0")
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
SPACE: Final = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What kube-apiserver counts as blank."""


def refusals(path: Path, value: Any, messages: Iterable[str]) -> list[FieldError]:
    """One error for each message about a value."""
    return [invalid(path, value, message) for message in messages]


def check_dns_label(path: Path, value: str) -> list[FieldError]:
    return refusals(path, value, names.check_dns1123_label(value))


def check_dns_subdomain(path: Path, value: str) -> list[FieldError]:
    return refusals(path, value, names.check_dns1123_subdomain(value))


def check_qualified_name(path: Path, value: str) -> list[FieldError]:
    return refusals(path, value, names.check_label_key(value))


def check_unchanged(path: Path, value: Any, old: Any) -> list[FieldError]:
    """The field may not change; missing and empty are the same."""
    return [] if value == old or not (value or old) else [invalid(path, value, IMMUTABLE)]


def check_enum(path: Path, value: str | None, allowed: Collection[str]) -> list[FieldError]:
    """One of a fixed, sorted set of values; a missing one is required."""
    if value in allowed:
        return []
    return [not_supported(path, value, allowed)] if value else [required(path, "")]


def check_old_ip(path: Path, value: str, known: Collection[str] = (), *, strict: bool = True) -> list[FieldError]:
    """An address in a field that predates today's rules; what was stored before stays valid."""
    return [] if value in known else refusals(path, value, addresses.check_legacy_ip(value, strict))


def check_old_cidr(path: Path, value: str, known: Collection[str] = (), *, strict: bool = True) -> list[FieldError]:
    """A block in a field that predates today's rules; what was stored before stays valid."""
    return [] if value in known else refusals(path, value, addresses.check_legacy_cidr(value, strict))


def check_endpoint_ip(path: Path, value: str) -> list[FieldError]:
    """An address that traffic can be sent to."""
    address = addresses.parse_ip(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address")]
    number = address.number & 0xFFFFFFFF if address.is_ipv4 else address.number
    why = _unreachable_ipv4(number, value) if address.is_ipv4 else _unreachable_ipv6(number, value)
    return [invalid(path, value, why)] if why else []


def _unreachable_ipv4(number: int, text: str) -> str:
    if number == 0:
        return f"may not be unspecified ({text})"
    if number >> 24 == 127:
        return _LOOPBACK
    if number >> 16 == 0xA9FE:
        return _LINK_LOCAL
    return _LINK_LOCAL_MULTICAST if number >> 8 == 0xE00000 else ""


def _unreachable_ipv6(number: int, text: str) -> str:
    if number == 0:
        return f"may not be unspecified ({text})"
    if number == 1:
        return _LOOPBACK
    if number >> 118 == 0xFE80 >> 6:
        return _LINK_LOCAL
    # Any prefix flags, scope 2.
    return _LINK_LOCAL_MULTICAST if number >> 120 == 0xFF and number >> 112 & 0xF == 2 else ""


_LOOPBACK: Final = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
_LINK_LOCAL: Final = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
_LINK_LOCAL_MULTICAST: Final = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"


def check_port(path: Path, value: int) -> list[FieldError]:
    return [] if 0 < value < 65536 else refusals(path, value, names.check_port_number(value))


def check_port_or_name(path: Path, value: Any) -> list[FieldError]:
    """A port's number, or its name in the pod."""
    if isinstance(value, str):
        return refusals(path, value, names.check_port_name(value))
    return check_port(path, value or 0)


def check_not_negative(path: Path, quantity: Quantity) -> list[FieldError]:
    return [invalid(path, str(quantity), NEGATIVE)] if quantity < ZERO else []


def check_dual_stack(path: Path, values: list[str], shown: Any, *, most: int = 2) -> list[FieldError]:
    """Addresses of both families, ``most`` at most. What was stored in a looser time may not be an address at all."""
    parsed = [addresses.parse_ip(value) for value in values]
    errs: list[FieldError] = []
    if None in parsed:
        at = parsed.index(None)
        errs.append(internal(path, f"failed to check for dual stack with error:invalid IP[{at}]: {values[at]}"))
    families = {address.is_ipv4 for address in parsed if address is not None}
    if errs or len(families) != 2 or len(values) > most:
        errs.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errs


def is_ipv6(text: str) -> bool:
    """Whether this is an IPv6 address; anything else, nonsense too, is not."""
    address = addresses.parse_ip(text)
    return address is not None and not address.is_ipv4
