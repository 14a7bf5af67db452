"""The strategies of networking kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "ingresses": "ingress.strategy.IngressStrategy",
        "ingressclasses": "ingress_class.IngressClassStrategy",
        "networkpolicies": "network_policy.NetworkPolicyStrategy",
        "ipaddresses": "ip_address.IPAddressStrategy",
        "servicecidrs": "service_cidr.ServiceCIDRStrategy",
    },
)
