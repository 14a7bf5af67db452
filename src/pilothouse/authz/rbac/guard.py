"""Nobody grants what they do not hold: writes of roles and bindings are checked after mutating admission.

That is where the object has its final content and nothing has been validated yet, as in kube-apiserver, whose refusals
come before any 422.
"""

from __future__ import annotations

from typing import Final

from pilothouse.authz.authorizer import Authorizer
from pilothouse.authz.guarding import Guard
from pilothouse.authz.rbac.escalation import check_binding, check_role
from pilothouse.authz.rbac.index import Index
from pilothouse.endpoints.admission import Admission, Attributes

_ROLES: Final = frozenset({"roles", "clusterroles"})
_BINDINGS: Final = frozenset({"rolebindings", "clusterrolebindings"})


class EscalationGuard(Guard):
    """Admission for the RBAC group."""

    def __init__(self, admission: Admission | None, authorizer: Authorizer, index: Index) -> None:
        super().__init__(admission)
        self._authorizer, self._index = authorizer, index

    async def check(self, attributes: Attributes) -> None:
        if attributes.subresource:
            return
        authorizer, index = self._authorizer, self._index
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
