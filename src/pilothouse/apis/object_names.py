"""What a kind's objects may be called. Validators take a name, or a generateName prefix to which letters are added."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.machinery import names

NameValidator = Callable[[str, bool], list[str]]
"""(name, is a generateName prefix) → messages."""


def name_is_dns_subdomain(name: str, prefix: bool) -> list[str]:
    """Most kinds."""
    return names.check_dns1123_subdomain(names.mask_trailing_dash(name) if prefix else name)


def name_is_dns_label(name: str, prefix: bool) -> list[str]:
    """Namespaces, services' host names …"""
    return names.check_dns1123_label(names.mask_trailing_dash(name) if prefix else name)


def name_is_declared(name: str, prefix: bool) -> list[str]:
    """Kinds whose rule for names is a declared one: ``errors.declare_name`` applies it, to whole names only."""
    return []


def name_is_path_segment(name: str, prefix: bool) -> list[str]:
    """Anything that can stand in a path: RBAC kinds, and the least every kind must satisfy."""
    return names.check_path_segment_prefix(name) if prefix else names.check_path_segment_name(name)
