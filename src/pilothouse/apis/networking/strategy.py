"""The strategies of networking.k8s.io."""

from __future__ import annotations

from pilothouse.apis.networking.ingress import IngressClassStrategy, IngressStrategy
from pilothouse.apis.networking.network_policy import NetworkPolicyStrategy
from pilothouse.apis.networking.service_ranges import IPAddressStrategy, ServiceCIDRStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "ingresses": IngressStrategy,
    "ingressclasses": IngressClassStrategy,
    "networkpolicies": NetworkPolicyStrategy,
    "ipaddresses": IPAddressStrategy,
    "servicecidrs": ServiceCIDRStrategy,
}
