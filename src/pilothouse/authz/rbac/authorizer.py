"""The RBAC authorizer: allows what some binding grants, and has no opinion about the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, PathRule, ResourceRule, RuleReader, Rules
from pilothouse.authz.rbac.index import Grants, Index
from pilothouse.authz.rbac.rules import CompiledRules
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import PATIENCE

MOST_VALUES: Final = 500_000
"""So many verbs, groups, resources, names and paths of rules are told."""
_TOO_MANY: Final = f"the user has more rules than can be listed, which have more than {MOST_VALUES} values"
_RULE_COST: Final = 10


class RBACAuthorizer:
    """Decides by an ``Index``, cluster-wide bindings first."""

    def __init__(self, index: Index) -> None:
        self.index = index

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        """Allow with the binding as the reason; else no opinion, with what went wrong as the reason."""
        return self.decide(attributes)

    def decide(self, attributes: Attributes) -> tuple[Decision, str]:
        """The same without a coroutine: nothing here waits."""
        cluster = self.index.grants(attributes.user)
        reason = _find(cluster, attributes)
        if reason:
            return Decision.ALLOW, reason
        errors = cluster.errors
        if attributes.namespace:
            local = self.index.grants(attributes.user, attributes.namespace)
            reason = _find(local, attributes)
            if reason:
                return Decision.ALLOW, reason
            errors += local.errors
        return Decision.NO_OPINION, f"RBAC: {aggregate(errors)}" if errors else ""

    def rules_for(self, user: User, namespace: str) -> RuleReader:
        """What the user's bindings grant, once for each binding."""
        return partial(_rules, self.index.roles_of(user, namespace), self.index.errors(user, namespace))


def _rules(roles: Sequence[CompiledRules], failures: list[str]) -> Rules:
    """The rules of the roles, as many as an answer can hold: a role of a megabyte may be bound ten thousand times."""
    resources: list[ResourceRule] = []
    paths: list[PathRule] = []
    values = 0
    for rule in chain.from_iterable(role.rules for role in roles):
        size = sum(map(len, rule.values()))
        values += size
        if values > MOST_VALUES:
            failures = [*failures, _TOO_MANY]
            break
        PATIENCE.spend(_RULE_COST + size)
        verbs = rule.get("verbs") or ()
        if rule.get("resources"):
            groups, names = rule.get("apiGroups") or (), rule.get("resourceNames") or ()
            resources.append(ResourceRule(verbs, groups, rule["resources"], names))
        if rule.get("nonResourceURLs"):
            paths.append(PathRule(verbs, rule["nonResourceURLs"]))
    return Rules(tuple(resources), tuple(paths), values > MOST_VALUES, aggregate(failures) if failures else "")


def _find(grants: Grants, attributes: Attributes) -> str:
    if attributes.resource_request:
        matches = grants.resource_matches(
            attributes.verb, attributes.group, attributes.resource, attributes.subresource
        )
        for names, reason in matches:
            if names is None or attributes.name in names:
                return reason
        return ""
    matches = grants.path_matches(attributes.verb, attributes.path)
    return matches[0][1] if matches else ""
