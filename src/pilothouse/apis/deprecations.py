"""Warnings that every request to a deprecated kind gets."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.resources import Resource

_DEPRECATED: Final = {
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def deprecation_of(resource: Resource) -> str:
    """The warning, or nothing."""
    return _DEPRECATED.get((resource.group, resource.version, resource.kind), "")
