"""NamespaceAutoProvision: the first object in a namespace makes the namespace."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import CREATE, Attributes
from pilothouse.endpoints.installer import make_field_manager
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.times import now

_NAMESPACES: Final = GroupResource("", "namespaces")
_MANAGER: Final = "kube-apiserver"
_USER: Final = "system:apiserver"


class NamespaceAutoProvision(Plugin):
    """See the module's docstring."""

    name = "NamespaceAutoProvision"
    operations = frozenset({CREATE})
    subresources = None

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._namespaces = environment.objects("", "v1", "namespaces")

    async def admit(self, attributes: Attributes) -> None:
        """Make the namespace if it is missing, but not for dry runs."""
        name = attributes.namespace
        if attributes.dry_run or not name or attributes.resource.group_resource == _NAMESPACES:
            return
        if await self._namespaces.find("", name) is not None:
            return
        try:
            await self._create(name)
        except errors.StatusError as refusal:
            if refusal.reason != "AlreadyExists":
                raise forbidden(attributes, refusal.message) from None

    async def _create(self, name: str) -> None:
        store = self._namespaces.store
        ctx = Context(user=_USER, verb="create", now=now())
        obj: dict[str, Any] = {"metadata": {"name": name}, "spec": {}, "status": {}}
        store.strategy.default(obj)
        fields = make_field_manager(store.resource, "", store.strategy)
        await store.create(ctx, fields.update(None, obj, _MANAGER, ctx.now))
