"""PodGroupProtection: a pod group carries a finalizer until no pod refers to it any more."""

from __future__ import annotations

from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_FINALIZER: Final = "scheduling.k8s.io/podgroup-protection"


class PodGroupProtection(Plugin):
    """See the module's docstring."""

    name = "PodGroupProtection"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("scheduling.k8s.io", "podgroups")})

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Only with generic workloads."""
        return self.environment.enabled("GenericWorkload") and super().concerns(operation, resource, subresource)

    async def admit(self, attributes: Attributes) -> None:
        """Add the finalizer."""
        if attributes.object is None:
            return
        metadata = attributes.object["metadata"]
        given = metadata.get("finalizers") or []
        if _FINALIZER not in given:
            metadata["finalizers"] = [*given, _FINALIZER]
