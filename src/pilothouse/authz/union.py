"""Puts the authorizers together: the superusers' group first, then the configured chain in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.authz.abac import ABACAuthorizer
from pilothouse.authz.always import SUPERUSERS, AlwaysAllow, AlwaysDeny, PrivilegedGroups
from pilothouse.authz.authorization_configuration import ConfiguredAuthorizer
from pilothouse.authz.authorizer import Authorizer, Union
from pilothouse.authz.metrics import AuthorizationMetrics
from pilothouse.authz.node.authorizer import NodeAuthorizer
from pilothouse.authz.node.graph import Graph
from pilothouse.authz.rbac.authorizer import RBACAuthorizer
from pilothouse.authz.rbac.index import Index
from pilothouse.machinery.metrics import Value


def build(
    chain: Sequence[ConfiguredAuthorizer],
    *,
    index: Index,
    graph: Graph,
    abac: ABACAuthorizer | None = None,
    webhook: Callable[[ConfiguredAuthorizer], Authorizer] | None = None,
    metrics: AuthorizationMetrics | None = None,
) -> Union:
    """The union to authorize every request by. Raises ``ValueError`` and ``OSError``."""
    if not chain:
        raise ValueError("at least one authorization mode must be passed")
    configured = [(entry.name, _one(entry, index, graph, abac, webhook)) for entry in chain]
    counted = {} if metrics is None else {entry.name: _opinions(entry, metrics) for entry in chain}
    return Union([(SUPERUSERS, PrivilegedGroups()), *configured], counted)


def _opinions(entry: ConfiguredAuthorizer, metrics: AuthorizationMetrics) -> tuple[Value, Value]:
    kind, name = entry.type, entry.name
    return metrics.decisions_of(kind, name, "allowed"), metrics.decisions_of(kind, name, "denied")


def _one(
    entry: ConfiguredAuthorizer,
    index: Index,
    graph: Graph,
    abac: ABACAuthorizer | None,
    webhook: Callable[[ConfiguredAuthorizer], Authorizer] | None,
) -> Authorizer:
    match entry.type:
        case "RBAC":
            return RBACAuthorizer(index)
        case "Node":
            return NodeAuthorizer(graph)
        case "AlwaysAllow":
            return AlwaysAllow()
        case "AlwaysDeny":
            return AlwaysDeny()
        case "ABAC" if abac is not None:
            return abac
        case "Webhook" if webhook is not None:
            return webhook(entry)
    raise ValueError(f"unknown authorization mode {entry.type} specified")
