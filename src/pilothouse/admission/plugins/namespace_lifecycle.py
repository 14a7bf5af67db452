"""NamespaceLifecycle: nothing new in namespaces that do not exist or are going, and three that never go."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.admission.plugin import Plugin
from pilothouse.admission.refusals import forbidden
from pilothouse.endpoints.admission import CREATE, DELETE, Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource

IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_NAMESPACES: Final = GroupResource("", "namespaces")
# What is said about a namespace here would tell who may not see it whether it exists.
_ACCESS_REVIEWS: Final = GroupResource("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    """See the module's docstring."""

    name = "NamespaceLifecycle"

    def __init__(self, environment: Environment, configuration: Any = None) -> None:
        super().__init__(environment)
        self._namespaces = environment.objects("", "v1", "namespaces")

    def concerns(self, operation: str, resource: GroupResource, subresource: str) -> bool:
        """Deleting namespaces, creating everything else."""
        if resource == _NAMESPACES:
            return operation == DELETE
        return operation == CREATE and resource != _ACCESS_REVIEWS

    async def admit(self, attributes: Attributes) -> None:
        """Refuse what does not fit the namespace's life."""
        if attributes.operation == DELETE:
            if attributes.name in IMMORTAL:
                why = "this namespace may not be deleted"
                raise errors.forbidden(attributes.resource.group_resource, attributes.name, why)
            return
        name = attributes.namespace
        if not name:
            return
        namespaces = self._namespaces
        namespace = namespaces.get("", name) or await namespaces.find("", name)
        if namespace is None:
            raise errors.not_found(_NAMESPACES, name)
        if namespace.get("status", {}).get("phase") == "Terminating":
            raise _terminating(attributes)


def _terminating(attributes: Attributes) -> errors.StatusError:
    name = attributes.namespace
    refusal = forbidden(attributes, f"unable to create new content in namespace {name} because it is being terminated")
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {name} is being terminated",
        "field": "metadata.namespace",
    }
    refusal.details = {**(refusal.details or {}), "causes": [cause]}
    return refusal
