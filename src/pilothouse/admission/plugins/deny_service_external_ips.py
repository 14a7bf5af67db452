"""DenyServiceExternalIPs: services get no new external addresses, which could draw off anybody's traffic."""

from __future__ import annotations

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource


class DenyServiceExternalIPs(Plugin):
    """See the module's docstring."""

    name = "DenyServiceExternalIPs"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({GroupResource("", "services")})

    async def validate(self, attributes: Attributes) -> None:
        """Refuse addresses that were not there before."""
        given = set(((attributes.object or {}).get("spec") or {}).get("externalIPs") or ())
        before = set(((attributes.old_object or {}).get("spec") or {}).get("externalIPs") or ())
        if given - before:
            raise forbidden(attributes, "Use of external IPs is denied by admission control")
