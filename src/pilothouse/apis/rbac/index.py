"""The strategies of roles and bindings, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "roles": "role.RoleStrategy",
        "clusterroles": "role.ClusterRoleStrategy",
        "rolebindings": "role_binding.RoleBindingStrategy",
        "clusterrolebindings": "role_binding.ClusterRoleBindingStrategy",
    },
)
