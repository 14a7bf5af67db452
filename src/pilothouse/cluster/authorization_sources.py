"""What keeps the knowledge of authorization fresh: informers of the objects that decide.

The index and the graph keep what they need of each object, so no object is kept for them.
Roles and bindings are heard of whatever the mode, because writes of them are checked against what the writer holds.
What nodes need is heard of only where the mode Node is on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from pilothouse.authz.authorization import Authorization
from pilothouse.authz.node import graph
from pilothouse.authz.rbac import index as rbac_index
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.objects import Object

_RBAC_KINDS: Final = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
_NODE_RESOURCES: Final = (
    ("", "v1", graph.POD),
    ("", "v1", graph.VOLUME),
    ("storage.k8s.io", "v1", graph.ATTACHMENT),
    ("resource.k8s.io", "v1", graph.SLICE),
    ("certificates.k8s.io", "v1", graph.CERTIFICATE_REQUEST),
)


class AuthorizationSources:
    """Feeds an authorizer's index and graph."""

    def __init__(self, authorization: Authorization, informers: InformerFactory) -> None:
        self._informers: list[Informer] = []
        index, known = authorization.index, authorization.graph
        for resource, kind in _RBAC_KINDS.items():
            informer = informers.of("rbac.authorization.k8s.io", "v1", resource)
            put, remove = partial(index.take, kind), partial(index.remove, kind)
            self._hear(informer, put, remove, digest=partial(rbac_index.digest, kind))
        if authorization.knows_nodes:
            for group, version, resource in _NODE_RESOURCES:
                informer = informers.of(group, version, resource)
                fields = graph.FIELDS.get(resource, ())
                self._hear(informer, partial(known.put, resource), partial(known.remove, resource), fields)

    def _hear(
        self,
        informer: Informer,
        put: Callable[[Any], None],
        remove: Callable[[str, str], None],
        fields: Sequence[str] = (),
        digest: Callable[[Object], Any] | None = None,
    ) -> None:
        self._informers.append(informer)
        informer.add_trimming_handler(put, remove, fields=fields, digest=digest, name="authorization")

    async def wait_synced(self) -> None:
        """Return when all objects that decide have been seen."""
        for informer in self._informers:
            await informer.wait_synced()
