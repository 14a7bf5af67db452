"""The configuration of ResourceQuota: resources that nobody may use without a quota that covers them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pilothouse.admission.configuration import require_kind
from pilothouse.machinery.gvk import GroupResource


@dataclass(slots=True)
class Limited:
    """One such resource: by parts of the names it is charged under, or by scopes."""

    resource: GroupResource
    contains: tuple[str, ...] = ()
    scopes: list[dict[str, Any]] = field(default_factory=list)


def read_configuration(raw: Any) -> list[Limited]:
    """Read the section of the admission configuration."""
    if raw is None:
        return []
    if raw.get("kind") == "Configuration":
        require_kind(raw, "resourcequota.admission.k8s.io", ("v1alpha1", "v1beta1"), "Configuration")
    else:
        require_kind(raw, "apiserver.config.k8s.io", ("v1",), "ResourceQuotaConfiguration")
    return [
        Limited(
            GroupResource(item.get("apiGroup", ""), item.get("resource", "")),
            tuple(item.get("matchContains") or ()),
            list(item.get("matchScopes") or ()),
        )
        for item in raw.get("limitedResources") or ()
    ]
