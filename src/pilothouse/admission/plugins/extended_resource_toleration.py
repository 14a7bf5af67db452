"""ExtendedResourceToleration: who requests a device tolerates the taint that keeps others away from it."""

from __future__ import annotations

from typing import Any

from pilothouse.admission.plugin import Plugin
from pilothouse.apis.core.resource_names import is_extended
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource


class ExtendedResourceToleration(Plugin):
    """See the module's docstring."""

    name = "ExtendedResourceToleration"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    only_looks = True

    async def admit(self, attributes: Attributes) -> None:
        """Add a toleration for each extended resource."""
        spec = (attributes.object or {}).get("spec") or {}
        names = {
            name
            for kind in ("containers", "initContainers")
            for container in spec.get(kind) or ()
            for name in (container.get("resources") or {}).get("requests") or ()
            if is_extended(name)
        }
        for name in sorted(names):
            _put(spec, {"key": name, "operator": "Exists", "effect": "NoSchedule"})


def _put(spec: dict[str, Any], toleration: dict[str, Any]) -> None:
    """Add a toleration, or put it in place of the one for the same taint."""
    kept = []
    replaced = False
    for each in spec.get("tolerations") or ():
        same = all(each.get(k, "") == toleration.get(k, "") for k in ("key", "effect", "operator", "value"))
        kept.append(toleration if same else each)
        replaced = replaced or same
    spec["tolerations"] = kept if replaced else [*kept, toleration]
