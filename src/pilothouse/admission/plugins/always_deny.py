"""AlwaysDeny: refuses everything, for tests of what happens then."""

from __future__ import annotations

from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery.gvk import GroupResource


class AlwaysDeny(Plugin):
    """See the module's docstring."""

    name = "AlwaysDeny"

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Everything."""
        return True

    async def admit(self, attributes: Attributes) -> None:
        """Refuse."""
        raise forbidden(attributes, "admission control is denying all modifications")

    async def validate(self, attributes: Attributes) -> None:
        """Refuse."""
        raise forbidden(attributes, "admission control is denying all modifications")
