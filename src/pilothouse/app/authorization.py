"""From flags to the authorizer of the server, and what keeps its knowledge fresh.

Roles and bindings are followed whatever the mode, because writes of them are checked against what the writer holds.
What nodes need is followed only where the mode Node is on. With ``--authorization-config`` a new content of the file
replaces the chain at once; the RBAC index and the node graph live on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pilothouse.app.reloaded_file import ReloadedFile
from pilothouse.authn.outgoing import OutgoingCalls
from pilothouse.authn.user import User
from pilothouse.authn.webhook_kubeconfig import read_webhook_kubeconfig
from pilothouse.authz import building
from pilothouse.authz.abac import ABACAuthorizer
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorization_configuration import (
    ConfiguredAuthorizer,
    WebhookSettings,
    authorizers_from_modes,
    parse_configuration,
)
from pilothouse.authz.authorizer import Authorizer, Decision, Rules, Union
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.authz.node import graph
from pilothouse.authz.rbac.index import Index
from pilothouse.authz.webhook import WebhookAuthorizer
from pilothouse.controllers.following import Follower
from pilothouse.registry.storage import StorageFactory

if TYPE_CHECKING:
    from pilothouse.options import ServerOptions

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
_WEBHOOK_SECONDS: Final = 30.0


class Replaceable:
    """A chain of authorizers that can be exchanged while requests are served."""

    def __init__(self, current: Union) -> None:
        self.current = current

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """As the present chain."""
        return await self.current.authorize(attributes)

    def rules_for(self, user: User, namespace: str) -> Rules:
        """As the present chain."""
        return self.current.rules_for(user, namespace)


class Authorization:
    """The authorizer and its sources."""

    def __init__(
        self, options: ServerOptions, storage: StorageFactory, outgoing: OutgoingCalls, identity: str = ""
    ) -> None:
        self._options, self._outgoing = options, outgoing
        self.metrics = AuthorizationMetrics(identity)
        flags = options.authorization
        self.index, self._graph = Index(), graph.Graph()
        self.followers: list[Follower] = []
        self._abac = ABACAuthorizer(flags.policy_file) if flags.policy_file else None
        self._file = ReloadedFile(flags.config, parse_configuration, self.metrics.reloads) if flags.config else None
        chain = self._file.value if self._file is not None else authorizers_from_modes(flags.mode or ("AlwaysAllow",))
        self._types = [entry.type for entry in chain]
        union = self._build(chain)
        self._replaceable = Replaceable(union) if self._file is not None else None
        self.authorizer: Replaceable | Union = self._replaceable or union
        self._follow_roles(storage)
        if "Node" in self._types:
            self._follow_nodes(storage)

    def _build(self, chain: tuple[ConfiguredAuthorizer, ...]) -> Union:
        return building.build(
            chain,
            index=self.index,
            graph=self._graph,
            abac=self._abac,
            webhook=self._webhook,
            metrics=self.metrics,
        )

    def _webhook(self, entry: ConfiguredAuthorizer) -> Authorizer:
        flags, settings = self._options.authorization, entry.webhook
        if settings is None:
            settings = WebhookSettings(
                flags.webhook_config_file,
                flags.webhook_version,
                _WEBHOOK_SECONDS,
                flags.webhook_cache_authorized_ttl,
                flags.webhook_cache_unauthorized_ttl,
                deny_on_failure=False,
            )
        if not settings.kubeconfig:
            raise ValueError("webhooks inside of the cluster need a kubeConfigFile here")
        post = self._outgoing.post_to(read_webhook_kubeconfig(settings.kubeconfig), settings.timeout)
        return WebhookAuthorizer(
            post,
            settings.version,
            settings.authorized_ttl,
            settings.unauthorized_ttl,
            Decision.DENY if settings.deny_on_failure else Decision.NO_OPINION,
            name=entry.name,
            conditions=settings.conditions,
            metrics=self.metrics.webhooks,
        )

    def _follow_roles(self, storage: StorageFactory) -> None:
        index = self.index
        for resource, kind in _RBAC_KINDS.items():
            self.followers.append(
                Follower(
                    storage.store("rbac.authorization.k8s.io", "v1", resource),
                    lambda obj, kind=kind: index.put(kind, obj),  # type: ignore[misc]
                    lambda namespace, name, kind=kind: index.remove(kind, namespace, name),  # type: ignore[misc]
                )
            )

    def _follow_nodes(self, storage: StorageFactory) -> None:
        known = self._graph
        for group, version, resource in _NODE_RESOURCES:
            self.followers.append(
                Follower(
                    storage.store(group, version, resource),
                    lambda obj, resource=resource: known.put(resource, obj),  # type: ignore[misc]
                    lambda namespace, name, resource=resource: known.remove(resource, namespace, name),  # type: ignore[misc]
                )
            )

    def poll(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        if self._abac is not None:
            self._abac.file.poll()
        if self._file is not None:
            self._file.poll_into(self._take)

    def _take(self, chain: tuple[ConfiguredAuthorizer, ...]) -> None:
        required, present = set(self._types) - {"Webhook"}, {entry.type for entry in chain}
        if not required <= present:
            raise ValueError(f"missing required types: [{' '.join(sorted(required - present))}]")
        assert self._replaceable is not None
        self._replaceable.current = self._build(chain)

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
