"""PodTopologyLabels: a pod carries zone and region of its node, from the moment it is bound."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class PodTopologyLabels(Plugin):
    """See the module's docstring."""

    name = "PodTopologyLabels"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "pods")})
    subresources = frozenset({"", "binding"})

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._nodes = environment.late_objects("", "v1", "nodes")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Only behind its feature gate."""
        enabled = self.environment.enabled("PodTopologyLabelsAdmission")
        return enabled and super().concerns(operation, resource, subresource)

    async def admit(self, attributes: Attributes) -> None:
        """Copy the node's labels to the pod or the binding."""
        obj = attributes.object or {}
        if attributes.subresource:
            target = obj.get("target") or {}
            name = target.get("name", "") if target.get("kind") == "Node" else ""
        else:
            name = (obj.get("spec") or {}).get("nodeName", "")
        if not name:
            return
        await self._nodes.ready()
        node = self._nodes.get("", name)
        labels = (node or {}).get("metadata", {}).get("labels") or {}
        copied = {key: labels[key] for key in _LABELS if key in labels}
        if copied:
            metadata = obj.setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}
