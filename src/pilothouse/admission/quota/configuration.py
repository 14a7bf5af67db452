"""The configuration of ResourceQuota: resources that nobody may use without a quota that covers them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pilothouse.admission.configuration import decoded, require_kind
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.shapes import Struct, Text


@dataclass(slots=True)
class Limited:
    """One such resource: by parts of the names it is charged under, or by scopes."""

    resource: GroupResource
    contains: tuple[str, ...] = ()
    scopes: list[dict[str, Any]] = field(default_factory=list)


_SCOPE: Final = Struct(
    "ScopedResourceSelectorRequirement",
    {"scopeName": Text("ResourceQuotaScope"), "operator": Text("ScopeSelectorOperator"), "values": [str]},
)
_LIMITED: Final = {"apiGroup": str, "resource": str, "matchContains": [str], "matchScopes": [_SCOPE]}
_SHAPE: Final = Struct(
    "ResourceQuotaConfiguration",
    {"apiVersion": str, "kind": str, "limitedResources": [Struct("LimitedResource", _LIMITED)]},
)


def read_configuration(raw: Any) -> list[Limited]:
    """Read the section of the admission configuration."""
    if raw is None:
        return []
    if isinstance(raw, dict) and raw.get("kind") == "Configuration":
        require_kind(raw, "resourcequota.admission.k8s.io", ("v1alpha1", "v1beta1"), "Configuration")
    else:
        require_kind(raw, "apiserver.config.k8s.io", ("v1",), "ResourceQuotaConfiguration")
    return [
        Limited(
            GroupResource(item.get("apiGroup", ""), item.get("resource", "")),
            tuple(item.get("matchContains") or ()),
            list(item.get("matchScopes") or ()),
        )
        for item in decoded(raw, _SHAPE).get("limitedResources") or ()
    ]
