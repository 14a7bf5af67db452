"""What an object of some kind uses, and which names in a quota speak of it. Kinds without own rules are counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pilothouse.admission.quota.amounts import ONE, count
from pilothouse.apis.core.pod_spec.amounts import Amounts
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object

Scope = dict[str, Any]
"""``scopeName``, ``operator`` and ``values``."""
_ALIASES: Final = {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}


class Evaluator:
    """Counts objects of a kind."""

    def __init__(self, resource: GroupResource) -> None:
        self._names = {count_name(resource)}
        if not resource.group and resource.resource in _ALIASES:
            self._names.add(resource.resource)

    def concerns(self, operation: str, subresource: str) -> bool:
        """Whether such requests can change what is used."""
        return operation == CREATE and not subresource

    def handles(self, attributes: Attributes) -> bool:
        """Whether this request can."""
        return True

    def matching(self, names: Iterable[str]) -> list[str]:
        """The names of a quota that this kind is charged to."""
        return [name for name in names if name in self._names]

    def in_scope(self, scope: Scope, obj: Object) -> bool:
        """Whether an object falls under a scope."""
        return False

    def has_scopes(self) -> bool:
        """Whether objects of this kind can fall under scopes at all."""
        return False

    def missing(self, names: Iterable[str], obj: Object) -> str:
        """What an object must state for these names to be charged, and does not; empty if nothing."""
        return ""

    def usage(self, obj: Object, namespace: str) -> Amounts:
        """What an object uses."""
        return dict.fromkeys(self._names, ONE)


class ServiceEvaluator(Evaluator):
    """Services, their node ports and load balancers."""

    _NAMES: Final = ("services", "services.nodeports", "services.loadbalancers")

    def __init__(self, resource: GroupResource) -> None:
        super().__init__(resource)
        self._names |= set(self._NAMES)

    def concerns(self, operation: str, subresource: str) -> bool:
        return operation in (CREATE, UPDATE) and not subresource

    def usage(self, obj: Object, namespace: str) -> Amounts:
        spec = obj.get("spec") or {}
        ports = spec.get("ports") or ()
        node_ports = balancers = 0
        if spec.get("type") == "NodePort":
            node_ports = len(ports)
        elif spec.get("type") == "LoadBalancer":
            balancers = 1
            allocates = spec.get("allocateLoadBalancerNodePorts") is not False
            node_ports = len(ports) if allocates else sum(1 for port in ports if port.get("nodePort"))
        return {
            "count/services": ONE,
            "services": ONE,
            "services.loadbalancers": count(balancers),
            "services.nodeports": count(node_ports),
        }


def count_name(resource: GroupResource) -> str:
    """What quotas call the number of objects of a kind."""
    return f"count/{resource}"
