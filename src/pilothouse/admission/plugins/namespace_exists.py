"""NamespaceExists: nothing happens in namespaces that do not exist. NamespaceLifecycle does this and more."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.endpoints.admission import CREATE, DELETE, UPDATE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource

_NAMESPACES: Final = GroupResource("", "namespaces")


class NamespaceExists(Plugin):
    """See the module's docstring."""

    name = "NamespaceExists"
    operations = frozenset({CREATE, UPDATE, DELETE})
    subresources = None

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._namespaces = environment.objects("", "v1", "namespaces")

    async def validate(self, attributes: Attributes) -> None:
        """Look for the namespace."""
        if not attributes.namespace or attributes.resource.group_resource == _NAMESPACES:
            return
        if await self._namespaces.find("", attributes.namespace) is None:
            raise errors.not_found(_NAMESPACES, attributes.namespace)
