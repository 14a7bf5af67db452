"""What keeps the knowledge of authorization fresh: informers of the objects that decide.

The index and the graph keep what they need of each object, so no object is kept for them.
Roles and bindings are heard of whatever the mode, because writes of them are checked against what the writer holds.
What nodes need is heard of only where the mode Node is on. In a large cluster that takes seconds, and concerns nobody
but nodes: requests are served meanwhile, and those that it is needed for wait.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from pilothouse.authz.authorization import Authorization
from pilothouse.authz.node import graph
from pilothouse.authz.rbac import index as rbac_index
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory

_NAME: Final = "authorization"
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
        self._roles: list[Informer] = []
        index, known = authorization.index, authorization.graph
        for resource, kind in _RBAC_KINDS.items():
            informer = informers.of("rbac.authorization.k8s.io", "v1", resource)
            put, remove = partial(index.take, kind), partial(index.remove, kind)
            digest = partial(rbac_index.digest, kind)
            informer.add_trimming_handler(put, remove, digest=digest, name=_NAME)
            self._roles.append(informer)
        if authorization.knows_nodes:
            for group, version, resource in _NODE_RESOURCES:
                informer = informers.of(group, version, resource)
                fields = graph.FIELDS.get(resource, ())
                put_object, remove_object = partial(known.put, resource), partial(known.remove, resource)
                informer.add_trimming_handler(put_object, remove_object, fields=fields, name=_NAME)
                known.fed_by(informer)

    async def wait_synced(self) -> None:
        """Return when all roles and bindings have been seen; the graph says itself whether it is whole."""
        for informer in self._roles:
            await informer.wait_synced()
