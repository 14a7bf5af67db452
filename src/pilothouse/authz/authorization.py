"""Whether somebody may do something, by everything that flags and ``--authorization-config`` say.

A new content of the configuration file replaces the chain of authorizers at once; the RBAC index and the node graph
live on. Both are fed from outside, by whoever follows the stored objects.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.authz.abac import ABACAuthorizer
from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorization_configuration import ConfiguredAuthorizer
from pilothouse.authz.authorizer import Authorizer, Decision, RuleReader, Union
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.authz.node.graph import Graph
from pilothouse.authz.rbac.index import Index
from pilothouse.authz.union import build as build_union
from pilothouse.machinery.reloaded_file import ReloadedFile
from pilothouse.machinery.user import User

Authorizers = tuple[ConfiguredAuthorizer, ...]


class Replaceable:
    """A chain of authorizers that can be exchanged while requests are served."""

    def __init__(self, current: Union) -> None:
        self.current = current

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """As the present chain."""
        return await self.current.authorize(attributes)

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        """The same without a coroutine. Raises ``NotKnownYet``."""
        return self.current.decide(attributes)

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """As the present chain."""
        return self.current.rules_for(user, namespace)


class Authorization:
    """The authorizer, and what it knows. ``authorizers`` are fixed, or the content of a file that may change."""

    def __init__(
        self,
        authorizers: Authorizers | ReloadedFile[Authorizers],
        webhook: Callable[[ConfiguredAuthorizer], Authorizer],
        metrics: AuthorizationMetrics,
        abac: ABACAuthorizer | None = None,
    ) -> None:
        self.metrics = metrics
        self.index, self.graph = Index(), Graph()
        self._webhook, self._abac = webhook, abac
        self._file = authorizers if isinstance(authorizers, ReloadedFile) else None
        chain = authorizers.value if isinstance(authorizers, ReloadedFile) else authorizers
        self._types = {entry.type for entry in chain}
        union = self._build(chain)
        self._replaceable = Replaceable(union) if self._file is not None else None
        self.authorizer: Replaceable | Union = self._replaceable or union

    @property
    def knows_nodes(self) -> bool:
        """Whether the node graph is asked."""
        return "Node" in self._types

    def poll(self) -> None:
        """Re-read files that changed. Not to be called on the event loop."""
        if self._abac is not None:
            self._abac.file.poll()
        if self._file is not None:
            self._file.poll_into(self._take)

    def _take(self, chain: Authorizers) -> None:
        required, present = self._types - {"Webhook"}, {entry.type for entry in chain}
        if not required <= present:
            raise ValueError(f"missing required types: [{' '.join(sorted(required - present))}]")
        assert self._replaceable is not None
        self._replaceable.current = self._build(chain)

    def _build(self, chain: Authorizers) -> Union:
        return build_union(
            chain, index=self.index, graph=self.graph, abac=self._abac, webhook=self._webhook, metrics=self.metrics
        )
