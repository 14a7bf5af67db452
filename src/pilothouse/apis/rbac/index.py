"""The strategies of roles and bindings, by resource."""

from __future__ import annotations

from pilothouse.apis.rbac.role import ClusterRoleStrategy, RoleStrategy
from pilothouse.apis.rbac.role_binding import ClusterRoleBindingStrategy, RoleBindingStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "roles": RoleStrategy,
    "clusterroles": ClusterRoleStrategy,
    "rolebindings": RoleBindingStrategy,
    "clusterrolebindings": ClusterRoleBindingStrategy,
}
