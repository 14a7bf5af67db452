"""What the expressions of policies see of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pilothouse.admission.objects import Objects
from pilothouse.admission.policies.criteria import Match
from pilothouse.admission.webhooks.reviews import make_request
from pilothouse.endpoints.admission import Attributes
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource, GroupVersionKind
from pilothouse.machinery.objects import Object

_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_HIDDEN: Final = frozenset({"managedFields", "ownerReferences", "selfLink"})


@dataclass(slots=True)
class Inputs:
    """The values of the variables, without those of the policy itself."""

    obj: Object | None
    old: Object | None
    request: Object
    namespace: Object | None
    params: Object | None
    access: dict[str, Any]
    """The authorizer's variables."""

    def bindings(self, *, namespace: bool = True, access: bool = True) -> dict[str, Any]:
        """The variables by name; not every expression is shown the namespace, or may ask the authorizer."""
        values = {
            "object": self.obj,
            "oldObject": self.old,
            "request": self.request,
            "namespaceObject": self.namespace if namespace else None,
            "params": self.params,
        }
        return {**values, **self.access} if access else values


def describe_request(attributes: Attributes, match: Match) -> Object:
    """The AdmissionRequest without its objects."""
    request = make_request("", attributes, match, None, None)
    del request["object"], request["oldObject"]
    return request


async def find_namespace(attributes: Attributes, namespaces: Objects) -> Object | None:
    """The namespace of the object as expressions see it, None for cluster-wide ones; raises the 404."""
    name = attributes.namespace
    if not name or attributes.kind == _NAMESPACE:
        return None
    found = await namespaces.find("", name)
    if found is None:
        raise errors.not_found(GroupResource("", "namespaces"), name)
    metadata = {key: value for key, value in found["metadata"].items() if key not in _HIDDEN}
    return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}
