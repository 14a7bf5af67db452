"""From flags to the authorizer of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilothouse.authn.user import SYSTEM_MASTERS
from pilothouse.authz.always import AlwaysAllow, AlwaysDeny, PrivilegedGroups
from pilothouse.authz.authorizer import Authorizer, Union
from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.index import Index
from pilothouse.controllers.following import Follower
from pilothouse.registry.storage import StorageFactory

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

_RBAC_KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}


class Authorization:
    """The authorizer and what keeps its knowledge fresh."""

    def __init__(self, options: ServerOptions, storage: StorageFactory) -> None:
        modes = options.authorization.mode or ("AlwaysAllow",)
        self.followers: list[Follower] = []
        ways: list[tuple[str, Authorizer]] = [("system:masters", PrivilegedGroups(SYSTEM_MASTERS))]
        for mode in modes:
            if mode == "AlwaysAllow":
                ways.append((mode, AlwaysAllow()))
            elif mode == "AlwaysDeny":
                ways.append((mode, AlwaysDeny()))
            elif mode == "RBAC":
                ways.append((mode, self._rbac(storage)))
        self.authorizer = Union(ways)

    def _rbac(self, storage: StorageFactory) -> Authorizer:
        index = Index()
        for resource, kind in _RBAC_KINDS.items():
            store = storage.store("rbac.authorization.k8s.io", "v1", resource)
            self.followers.append(
                Follower(
                    store,
                    lambda obj, kind=kind: index.put(kind, obj),  # type: ignore[misc]
                    lambda namespace, name, kind=kind: index.remove(kind, namespace, name),  # type: ignore[misc]
                )
            )
        return RBACAuthorizer(index)

    async def start(self) -> None:
        """Follow the objects that decide, and wait until all there are have been seen."""
        for follower in self.followers:
            follower.start()
        for follower in self.followers:
            await follower.synced.wait()

    async def stop(self) -> None:
        """Stop following."""
        for follower in self.followers:
            await follower.stop()
