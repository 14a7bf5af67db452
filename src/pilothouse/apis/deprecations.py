"""Warnings that every request to a deprecated kind gets, as the kinds' lifecycles say for this release."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.apis.resources import Resource

_DEPRECATED: Final = {
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


class _End(NamedTuple):
    """Minor releases of the deprecation and the removal of a version, and the version that takes its place."""

    deprecated: int
    removed: int
    replacement: str = ""


_VERSIONS: Final = {
    ("admissionregistration.k8s.io", "v1alpha1"): _End(35, 38),
    ("admissionregistration.k8s.io", "v1beta1"): _End(37, 40, "v1"),
    ("certificates.k8s.io", "v1beta1"): _End(37, 40, "v1"),
    ("coordination.k8s.io", "v1alpha2"): _End(35, 38),
    ("coordination.k8s.io", "v1beta1"): _End(36, 39),
    ("resource.k8s.io", "v1alpha3"): _End(36, 39),
    ("resource.k8s.io", "v1beta1"): _End(35, 38),
    ("resource.k8s.io", "v1beta2"): _End(36, 39),
    ("storagemigration.k8s.io", "v1beta1"): _End(37, 40, "v1"),
}
_LATER: Final = frozenset(
    {("resource.k8s.io", "v1beta2", "DeviceTaintRule"), ("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest")}
)
"""Kinds that came to a version late and are not deprecated with it."""


def removal_of(resource: Resource) -> str:
    """The release that will serve the kind no more, or nothing."""
    end = _VERSIONS.get((resource.group, resource.version))
    return "" if end is None or (resource.group, resource.version, resource.kind) in _LATER else f"1.{end.removed}"


def deprecation_of(resource: Resource) -> str:
    """The warning, or nothing."""
    kind = (resource.group, resource.version, resource.kind)
    end = _VERSIONS.get(kind[:2])
    if end is None or kind in _LATER:
        return _DEPRECATED.get(kind, "")
    text = f"{resource.group_version} {resource.kind} is deprecated in v1.{end.deprecated}+"
    text += f", unavailable in v1.{end.removed}+"
    return f"{text}; use {resource.group}/{end.replacement} {resource.kind}" if end.replacement else text
