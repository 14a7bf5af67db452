"""TaintNodesByCondition: a new node is not ready until somebody says it is."""

from __future__ import annotations

from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.machinery.gvk import GroupResource

_KEY: Final = "node.kubernetes.io/not-ready"
_EFFECT: Final = "NoSchedule"


class TaintNodesByCondition(Plugin):
    """See the module's docstring."""

    name = "TaintNodesByCondition"
    operations = frozenset({CREATE})
    resources = frozenset({GroupResource("", "nodes")})

    async def admit(self, attributes: Attributes) -> None:
        """Taint the node."""
        if attributes.object is None:
            return
        spec = attributes.object.setdefault("spec", {})
        taints = spec.get("taints") or []
        if not any(taint.get("key") == _KEY and taint.get("effect") == _EFFECT for taint in taints):
            spec["taints"] = [*taints, {"key": _KEY, "effect": _EFFECT}]
