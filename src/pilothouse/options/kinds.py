"""The types a flag's value can have: how its text is read, merged with an earlier occurrence, and shown.

``Kind.read(text, earlier)`` gets the value of an earlier occurrence on the same command line (``None`` for the
first), so a list flag appends while the first occurrence replaces the default, as pflag does. It raises
``ValueRefused`` with kube-apiserver's words. ``Kind.word`` is the type shown in ``--help``; ``Kind.bare`` is the text
meant by a flag without a value.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pilothouse.machinery.go_quote import format_float, quote
from pilothouse.options.csv_values import read_csv
from pilothouse.options.go_numbers import (
    ValueRefused,
    format_duration,
    parse_bool,
    parse_decimal,
    parse_duration,
    parse_float,
    parse_int,
    parse_uint,
)

T = TypeVar("T")
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[T]):
    """One type of flag value."""

    word: str
    read: Callable[[str, T | None], T]
    show: Callable[[T], str]
    bare: str | None = None


@dataclass(frozen=True, slots=True)
class NamedCertKey:
    """A serving certificate for some names, from ``--tls-sni-cert-key``."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.cert_file},{self.key_file}" + (":" + ",".join(self.names) if self.names else "")


@dataclass(frozen=True, slots=True)
class PortRange:
    """A range of ports, inclusive at both ends; ``size`` 0 is the empty range."""

    base: int
    size: int

    def __contains__(self, port: object) -> bool:
        return isinstance(port, int) and self.base <= port < self.base + self.size

    def __str__(self) -> str:
        return f"{self.base}-{self.base + self.size - 1}" if self.size else ""


def _single(parse: Callable[[str], T]) -> Callable[[str, T | None], T]:
    return lambda text, _earlier: parse(text)


def _parse_ip(text: str) -> str:
    if not text:
        return ""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        raise ValueRefused(f"failed to parse IP: {quote(text)}") from None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _read_strings(text: str, earlier: tuple[str, ...] | None) -> tuple[str, ...]:
    return (earlier or ()) + read_csv(text)


def _read_array(text: str, earlier: tuple[str, ...] | None) -> tuple[str, ...]:
    return (*(earlier or ()), text)


def _read_int32s(text: str, earlier: tuple[int, ...] | None) -> tuple[int, ...]:
    return (earlier or ()) + tuple(parse_int(part, 32) for part in text.split(","))


def _read_pairs(text: str, earlier: dict[str, str] | None) -> dict[str, str]:
    """``a=1,b=2``; a key without a value is kept with an empty one (``--runtime-config``)."""
    pairs = dict(earlier or {})
    for item in filter(None, text.split(",")):
        key, _, value = item.partition("=")
        pairs[key.strip()] = value.strip()
    return pairs


def _read_one_pair(text: str, earlier: dict[str, str] | None) -> dict[str, str]:
    """One ``key=value`` an occurrence: commas belong to the value (``--oidc-required-claim``)."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueRefused("malformed pair, expect string=string")
    return {**(earlier or {}), key.strip(): value.strip()}


def _read_csv_pairs(text: str, earlier: dict[str, str] | None) -> dict[str, str]:
    """pflag's stringToString: one pair may hold commas; more than one pair is read as CSV."""
    count = text.count("=")
    if count == 0:
        raise ValueRefused(f"{text} must be formatted as key=value")
    items = (text.strip('"'),) if count == 1 else read_csv(text)
    pairs = dict(earlier or {})
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise ValueRefused(f"{item} must be formatted as key=value")
        pairs[key] = value
    return pairs


Multimap = dict[str, tuple[str, ...]]


def _read_multimap(text: str, earlier: Multimap | None) -> Multimap:
    """``component:Gate=true,Gate=false``; without a component the key is empty."""
    entries = dict(earlier or {})
    for item in filter(None, text.split(",")):
        head, colon, tail = item.partition(":")
        key, value = (head.strip(), tail.strip()) if colon else ("", head.strip())
        entries[key] = (*entries.get(key, ()), value)
    return entries


def _show_multimap(entries: Multimap) -> str:
    return ",".join(f"{key}:{value}" for key in sorted(entries) for value in entries[key])


def _parse_port_range(text: str) -> PortRange:
    text = text.strip()
    if not text:
        return PortRange(0, 0)
    if "-" in text and "+" in text:
        raise ValueRefused(f"unable to parse port range: {text}")
    if "+" in text:
        low_text, _, offset = text.partition("+")
        low = parse_decimal(low_text)
        high = low + parse_decimal(offset)
    elif "-" in text:
        low_text, _, high_text = text.partition("-")
        low, high = parse_decimal(low_text), parse_decimal(high_text)
    else:
        low = high = parse_decimal(text)
    if low > 65535 or high > 65535:
        raise ValueRefused(f"the port range cannot be greater than 65535: {text}")
    if high < low:
        raise ValueRefused(f"end port cannot be less than start port: {text}")
    return PortRange(low, 1 + high - low)


def _read_cert_keys(text: str, earlier: tuple[NamedCertKey, ...] | None) -> tuple[NamedCertKey, ...]:
    files, colon, names = text.partition(":")
    if colon and not names.strip():
        raise ValueRefused("empty names list is not allowed")
    parts = files.strip().split(",")
    if len(parts) != 2:
        raise ValueRefused("expected comma separated certificate and key file paths")
    patterns = tuple(name.strip() for name in names.strip().split(",")) if colon else ()
    return (*(earlier or ()), NamedCertKey(parts[0].strip(), parts[1].strip(), patterns))


def _parse_quantity(text: str) -> str:
    if not _QUANTITY.fullmatch(text):
        raise ValueRefused(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return text


def _read_vmodule(text: str, earlier: tuple[tuple[str, int], ...] | None) -> tuple[tuple[str, int], ...]:
    items = list(earlier or ())
    for item in filter(None, text.split(",")):
        parts = item.split("=")
        if len(parts) != 2 or not all(parts):
            raise ValueRefused(f"{quote(item)} does not have the pattern=N format")
        try:
            items.append((parts[0], parse_uint(parts[1], 31)))
        except ValueRefused as refusal:
            raise ValueRefused(f"parsing verbosity in {quote(item)}: {refusal}") from None
    return tuple(items)


def _parse_version(text: str) -> str:
    if text == "raw" or text.startswith("v"):
        return text
    return "true" if parse_bool(text) else "false"


def _show_bool(value: bool) -> str:
    return "true" if value else "false"


def _show_list(value: tuple[Any, ...]) -> str:
    return "[" + ",".join(str(v) for v in value) + "]" if value else ""


def _show_pairs(value: dict[str, str]) -> str:
    return ",".join(f"{k}={value[k]}" for k in sorted(value))


BOOL: Kind[bool] = Kind("", _single(parse_bool), _show_bool, bare="true")
INT: Kind[int] = Kind("int", _single(parse_int), str)
UINT: Kind[int] = Kind("uint", _single(lambda text: parse_uint(text, 64, any_base=True)), str)
FLOAT: Kind[float] = Kind("float", _single(parse_float), format_float)
FLOAT32: Kind[float] = Kind("float32", _single(parse_float), format_float)
STRING: Kind[str] = Kind("string", _single(str), lambda value: f'"{value}"' if value else "")
STRINGS: Kind[tuple[str, ...]] = Kind("strings", _read_strings, _show_list)
STRING_ARRAY: Kind[tuple[str, ...]] = Kind("stringArray", _read_array, _show_list)
INT32_SLICE: Kind[tuple[int, ...]] = Kind("int32Slice", _read_int32s, lambda value: _show_list(value) or "[]")
DURATION: Kind[float] = Kind("duration", _single(parse_duration), format_duration)
IP: Kind[str] = Kind("ip", _single(_parse_ip), str)
MAP_STRING_STRING: Kind[dict[str, str]] = Kind("mapStringString", _read_pairs, _show_pairs)
CLAIMS: Kind[dict[str, str]] = Kind("mapStringString", _read_one_pair, _show_pairs)
STRING_TO_STRING: Kind[dict[str, str]] = Kind(
    "stringToString", _read_csv_pairs, lambda value: f"[{_show_pairs(value)}]"
)
MULTIMAP: Kind[Multimap] = Kind("colonSeparatedMultimapStringString", _read_multimap, _show_multimap)
PORT_RANGE: Kind[PortRange] = Kind("portRange", _single(_parse_port_range), str)
NAMED_CERT_KEYS: Kind[tuple[NamedCertKey, ...]] = Kind(
    "namedCertKey", _read_cert_keys, lambda value: "[" + ";".join(map(str, value)) + "]"
)
QUANTITY: Kind[str] = Kind("quantity", _single(_parse_quantity), str)
LEVEL: Kind[int] = Kind("Level", _single(lambda text: parse_uint(text, 31)), str)
VMODULE: Kind[tuple[tuple[str, int], ...]] = Kind(
    "pattern=N,...", _read_vmodule, lambda value: ",".join(f"{pattern}={level}" for pattern, level in value)
)
VERSION: Kind[str] = Kind("version[=true]", _single(_parse_version), str, bare="true")
