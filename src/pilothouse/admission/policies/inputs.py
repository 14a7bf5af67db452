"""What the expressions of policies see of one request. Most read the object alone: the rest is made when it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
    request: Callable[[], Object]
    namespace: Callable[[], Object | None]
    params: Object | None
    access: Callable[[], dict[str, Any]]
    """The authorizer's variables."""

    def bindings(self, *, namespace: bool = True, access: bool = True) -> dict[str, Any]:
        """The variables by name; not every expression is shown the namespace, or may ask the authorizer."""
        return _Bindings(self, namespace=namespace, access=access)


class _Bindings(dict[str, Any]):
    """The variables by name, where those that take work are made at the first look."""

    __slots__ = ("_access", "_inputs", "_namespace")

    def __init__(self, inputs: Inputs, *, namespace: bool, access: bool) -> None:
        super().__init__(object=inputs.obj, oldObject=inputs.old, params=inputs.params)
        self._inputs, self._namespace, self._access = inputs, namespace, access

    def __missing__(self, name: str) -> Any:
        inputs = self._inputs
        if name == "request":
            self[name] = inputs.request()
        elif name == "namespaceObject":
            self[name] = inputs.namespace() if self._namespace else None
        elif self._access:
            self.update(inputs.access())
        if name not in self:
            raise KeyError(name)
        return self[name]


def describe_request(attributes: Attributes, match: Match) -> Object:
    """The AdmissionRequest without its objects."""
    request = make_request("", attributes, match, None, None)
    del request["object"], request["oldObject"]
    return request


async def find_namespace(attributes: Attributes, namespaces: Objects) -> Callable[[], Object | None]:
    """Gives the namespace of the object as expressions see it, None for cluster-wide ones; raises the 404."""
    name = attributes.namespace
    if not name or attributes.kind == _NAMESPACE:
        return _no_namespace
    found = await namespaces.find("", name)
    if found is None:
        raise errors.not_found(GroupResource("", "namespaces"), name)
    return partial(_describe_namespace, found)


def _no_namespace() -> None:
    return None


def _describe_namespace(found: Object) -> Object:
    metadata = {key: value for key, value in found["metadata"].items() if key not in _HIDDEN}
    return {"metadata": metadata, "spec": found.get("spec") or {}, "status": found.get("status") or {}}
