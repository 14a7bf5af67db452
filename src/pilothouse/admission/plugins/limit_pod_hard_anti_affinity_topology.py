"""LimitPodHardAntiAffinityTopology: pods may keep others off their host, not off whole zones."""

from __future__ import annotations

from typing import Final

from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource

_HOST: Final = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(Plugin):
    """See the module's docstring."""

    name = "LimitPodHardAntiAffinityTopology"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "pods")})
    only_looks = True

    async def validate(self, attributes: Attributes) -> None:
        """Look at the topology of required terms."""
        pod = attributes.object or {}
        rules = ((pod.get("spec") or {}).get("affinity") or {}).get("podAntiAffinity") or {}
        for term in rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            key = term.get("topologyKey", "")
            if key != _HOST:
                why = (
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} "
                    f"but only key {_HOST} is allowed"
                )
                name = (pod.get("metadata") or {}).get("name", "")
                raise errors.forbidden(attributes.resource.group_resource, name, why)
