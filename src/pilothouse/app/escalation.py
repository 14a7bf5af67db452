"""Nobody grants what they do not hold: writes of roles and bindings are checked after mutating admission.

That is where the object has its final content and nothing has been validated yet, as in the original, whose refusals
come before any 422.
"""

from __future__ import annotations

from typing import Final

from pilothouse.app.authorization import Authorization
from pilothouse.authz.rbac.escalation import GROUP, check_binding, check_role
from pilothouse.endpoints.admission import CREATE, UPDATE, Admission, Attributes

_ROLES: Final = frozenset({"roles", "clusterroles"})
_BINDINGS: Final = frozenset({"rolebindings", "clusterrolebindings"})


class EscalationGuard:
    """Admission for the RBAC group: that of the server, then the checks."""

    def __init__(self, admission: Admission | None, authorization: Authorization) -> None:
        self._admission = admission
        self._authorization = authorization

    def handles(self, operation: str) -> bool:
        """Creates and updates always."""
        if operation in (CREATE, UPDATE):
            return True
        return self._admission is not None and self._admission.handles(operation)

    async def admit(self, attributes: Attributes) -> None:
        """Run the mutating plug-ins, then refuse escalation. Raises StatusError."""
        admission = self._admission
        if admission is not None and admission.handles(attributes.operation):
            await admission.admit(attributes)
        if attributes.operation in (CREATE, UPDATE) and not attributes.subresource:
            await self._check(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Run the validating plug-ins."""
        admission = self._admission
        if admission is not None and admission.handles(attributes.operation):
            await admission.validate(attributes)

    async def _check(self, attributes: Attributes) -> None:
        authorizer, index = self._authorization.authorizer, self._authorization.index
        resource, obj, old = attributes.resource.resource, attributes.object, attributes.old_object
        assert obj is not None
        if resource in _ROLES:
            await check_role(
                attributes.user,
                authorizer,
                index,
                obj,
                old,
                resource=resource,
                namespace=attributes.namespace,
                request_name=attributes.path_name,
            )
        elif resource in _BINDINGS:
            await check_binding(
                attributes.user, authorizer, index, obj, old, resource=resource, namespace=attributes.namespace
            )


def guard_roles(admission: Admission | None, authorization: Authorization) -> dict[str, Admission]:
    """Admission for the groups whose writes need more than the plug-ins."""
    return {GROUP: EscalationGuard(admission, authorization)}
