"""The RBAC authorizer: allows what some binding grants, and has no opinion about the rest."""

from __future__ import annotations

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import Decision, PathRule, ResourceRule, Rules
from pilothouse.authz.rbac.index import Grants, Index
from pilothouse.machinery.field_errors import aggregate
from pilothouse.machinery.user import User


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

    def rules_for(self, user: User, namespace: str) -> Rules:
        """What the user's bindings grant, once for each binding."""
        resources: list[ResourceRule] = []
        paths: list[PathRule] = []
        for rule in self.index.visit(user, namespace):
            verbs = tuple(rule.get("verbs") or ())
            if rule.get("resources"):
                groups, names = tuple(rule.get("apiGroups") or ()), tuple(rule.get("resourceNames") or ())
                resources.append(ResourceRule(verbs, groups, tuple(rule["resources"]), names))
            if rule.get("nonResourceURLs"):
                paths.append(PathRule(verbs, tuple(rule["nonResourceURLs"])))
        errors = self.index.errors(user, namespace)
        return Rules(tuple(resources), tuple(paths), False, aggregate(errors) if errors else "")


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
