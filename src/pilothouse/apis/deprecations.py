"""Warnings that every request to a deprecated kind gets, as the kinds' lifecycles say for this release."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.resources import End, Resource, Subresource
from pilothouse.machinery.gvk import GroupVersionKind

_DEPRECATED: Final = {
    ("", "v1", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
    ("", "v1", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


_VERSIONS: Final = {
    ("admissionregistration.k8s.io", "v1alpha1"): End(35, 38),
    ("admissionregistration.k8s.io", "v1beta1"): End(37, 40, "v1"),
    ("certificates.k8s.io", "v1beta1"): End(37, 40, "v1"),
    ("coordination.k8s.io", "v1alpha2"): End(35, 38),
    ("coordination.k8s.io", "v1beta1"): End(36, 39),
    ("resource.k8s.io", "v1alpha3"): End(36, 39),
    ("resource.k8s.io", "v1beta1"): End(35, 38),
    ("resource.k8s.io", "v1beta2"): End(36, 39),
    ("storagemigration.k8s.io", "v1beta1"): End(37, 40, "v1"),
}
_LATER: Final = frozenset(
    {("resource.k8s.io", "v1beta2", "DeviceTaintRule"), ("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest")}
)
"""Kinds that came to a version late and are not deprecated with it."""


def removal_of(resource: Resource) -> str:
    """The release that serves the kind no more, or nothing."""
    end = _end_of(resource)
    return "" if end is None else f"1.{end.removed}"


def deprecation_of(resource: Resource, sub: Subresource | None = None) -> str:
    """The warning of a resource or of a subresource that takes a kind of its own, or nothing."""
    if sub is not None:
        return "" if sub.end is None else _text(sub.kind, sub.end)
    end = _end_of(resource)
    if end is None:
        return _DEPRECATED.get((resource.group, resource.version, resource.kind), "")
    return _text(resource.gvk, end)


def _end_of(resource: Resource) -> End | None:
    if resource.legacy:
        return resource.end
    kind = (resource.group, resource.version, resource.kind)
    end = _VERSIONS.get(kind[:2])
    if end is None or kind in _LATER:
        return None
    use = f"{resource.group}/{end.replacement} {resource.kind}" if end.replacement else ""
    return End(end.deprecated, end.removed, use)


def _text(kind: GroupVersionKind, end: End) -> str:
    text = f"{kind.group_version} {kind.kind} is deprecated in v1.{end.deprecated}+, unavailable in v1.{end.removed}+"
    return f"{text}; use {end.replacement}" if end.replacement else text
