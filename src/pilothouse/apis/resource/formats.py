"""The names of drivers, pools, devices and attributes, and lists of limited size whose items differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.error_lists import ErrorList
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    invalid,
    required,
    too_long,
    too_long_characters,
    too_many,
)
from pilothouse.machinery.schema.ordering import arrange

DRIVER_LIMIT: Final = 63
ID_LIMIT: Final = 32
POOL_LIMIT: Final = 253
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_MESSAGE: Final = "must be a lowercase UUID in 8-4-4-4-12 format"
_SLASH_MESSAGE: Final = "a fully qualified name must be a domain and a name separated by a slash"


def check_driver(name: str, path: Path, errs: list[FieldError]) -> None:
    """A driver's name, by written rules."""
    if not name:
        errs.append(required(path))
        return
    if len(name.encode()) > DRIVER_LIMIT:
        errs.append(too_long(path, "", DRIVER_LIMIT))
    errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain(name.lower()))


def check_declared_driver(name: str, path: Path, errs: list[FieldError]) -> None:
    """A driver's name, by declared rules."""
    if not name:
        errs.append(required(path))
        return
    errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain_caseless(name))
    if len(name) > DRIVER_LIMIT:
        errs.append(too_long_characters(path, name, DRIVER_LIMIT))


def check_pool(name: str, path: Path, errs: list[FieldError]) -> None:
    """A pool's name, by written rules: subdomains separated by slashes."""
    if not name:
        errs.append(required(path))
        return
    if len(name.encode()) > POOL_LIMIT:
        errs.append(too_long(path, "", POOL_LIMIT))
    for part in name.split("/"):
        errs += (invalid(path, part, message) for message in names.check_dns1123_subdomain(part))


def check_declared_pool(name: str, path: Path, errs: list[FieldError]) -> None:
    """A pool's name, by declared rules."""
    if not name:
        errs.append(required(path))
        return
    if len(name.encode()) > POOL_LIMIT:
        errs.append(too_long(path, "", POOL_LIMIT))
    for at, part in enumerate(name.split("/")):
        if not part:
            errs.append(invalid(path, name, f"segment {at}: must not be empty"))
        errs += (
            invalid(path, part, f"segment {at}: {m}")
            for m in (names.check_dns1123_subdomain(part, "bytes") if part else ())
        )


def check_label(name: str, path: Path, errs: list[FieldError]) -> None:
    """A DNS label."""
    errs += (invalid(path, name, message) for message in names.check_dns1123_label(name))


def check_declared_label(name: str, path: Path, errs: list[FieldError]) -> None:
    """A DNS label, by declared rules."""
    errs += (invalid(path, name, message) for message in names.check_dns1123_label(name, "bytes"))


def check_uuid(text: str, path: Path, errs: list[FieldError]) -> None:
    """A UUID in its one form."""
    if not _UUID.fullmatch(text):
        errs.append(invalid(path, text, _UUID_MESSAGE))


def _check_identifier(text: str, path: Path, errs: list[FieldError]) -> None:
    if len(text.encode()) > ID_LIMIT:
        errs.append(too_long(path, "", ID_LIMIT))
    errs += (invalid(path, text, message) for message in names.check_c_identifier(text))


def check_qualified_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """An attribute's or capacity's name, with or without a domain; by written rules."""
    domain, slash, rest = name.partition("/")
    if not slash:
        _check_identifier(name, path, errs)
    elif "/" not in rest:
        if not domain:
            errs.append(invalid(path, "", "the domain must not be empty"))
        else:
            check_driver(domain, path, errs)
        if not rest:
            errs.append(invalid(path, "", "the name must not be empty"))
        else:
            _check_identifier(rest, path, errs)


def check_declared_full_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """An attribute's name with its domain, by declared rules."""
    domain, slash, rest = name.partition("/")
    if not slash:
        _check_identifier(name, path, errs)
        errs.append(invalid(path, name, _SLASH_MESSAGE))
    elif "/" not in rest:
        if not domain:
            errs.append(invalid(path, "", "prefix must not be empty"))
        else:
            if len(domain.encode()) > DRIVER_LIMIT:
                errs.append(too_long(path, "", DRIVER_LIMIT))
            errs += (invalid(path, domain, f"prefix: {why}") for why in names.check_dns1123_subdomain(domain, "bytes"))
        if not rest:
            errs.append(invalid(path, "", "name must not be empty"))
        else:
            _check_identifier(rest, path, errs)


def check_declared_extended_name(name: str, path: Path, errs: list[FieldError]) -> None:
    """The name of an extended resource."""
    if "/" not in name:
        why = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        errs.append(invalid(path, name, why))
    elif "kubernetes.io/" in name:
        errs.append(invalid(path, name, 'must not have "kubernetes.io/" domain'))
    if name.startswith("requests."):
        errs.append(invalid(path, name, 'must not have "requests." prefix'))
    errs += (invalid(path, name, message) for message in names.check_label_key(f"requests.{name}"))


def declare_limit(items: list[Any], limit: int, path: Path, errs: ErrorList) -> bool:
    """A declared limit of a list's length. Nothing else is said about a list that is too long."""
    if len(items) > limit:
        errs.declared.append(too_many(path, len(items), limit))
        return False
    return True


def declare_unique(items: list[Any], key: Callable[[Any], Any], path: Path, type_name: str, errs: ErrorList) -> None:
    """Items of a list differ in their keys; the second one is shown whole."""
    seen: set[Any] = set()
    for position, item in enumerate(items):
        if key(item) in seen:
            shown = arrange(types.struct(type_name), item) if type_name else item
            errs.declared.append(duplicate(path.index(position), shown))
        seen.add(key(item))


def shorten(key: str, limit: int) -> str:
    """A map's key as it stands in a path: the middle of a long one is left out."""
    if len(key) <= limit:
        return key
    rest = limit - 3
    return key[: (rest + 1) // 2] + "..." + key[len(key) - rest // 2 :]
