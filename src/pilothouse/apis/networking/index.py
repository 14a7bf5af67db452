"""The strategies of networking kinds, by resource."""

from __future__ import annotations

from pilothouse.apis.networking.ingress.strategy import IngressStrategy
from pilothouse.apis.networking.ingress_class import IngressClassStrategy
from pilothouse.apis.networking.ip_address import IPAddressStrategy
from pilothouse.apis.networking.network_policy import NetworkPolicyStrategy
from pilothouse.apis.networking.service_cidr import ServiceCIDRStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    "ingresses": IngressStrategy,
    "ingressclasses": IngressClassStrategy,
    "networkpolicies": NetworkPolicyStrategy,
    "ipaddresses": IPAddressStrategy,
    "servicecidrs": ServiceCIDRStrategy,
}
