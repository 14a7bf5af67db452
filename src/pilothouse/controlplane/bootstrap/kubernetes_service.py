"""The ``kubernetes`` service, by which everything inside the cluster reaches its API server.

It is made when it is missing and left alone otherwise, together with the IPAddress that reserves its cluster IP.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.controllers.own_objects import create_missing
from pilothouse.registry.store.store import Store

SERVICE_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class KubernetesService:
    """What the service is made of. A node port of 0 is none."""

    services: Store
    addresses: Store
    cluster_ip: str
    target_port: int
    node_port: int = 0

    async def ensure(self) -> None:
        """Create what is missing. The address comes second: creating a service may itself reserve it."""
        await create_missing(self.services, self.service())
        await create_missing(self.addresses, self.address())

    def service(self) -> dict[str, Any]:
        """The service as it is created."""
        port: dict[str, Any] = {
            "name": "https",
            "protocol": "TCP",
            "port": SERVICE_PORT,
            "targetPort": self.target_port,
        }
        spec: dict[str, Any] = {
            "ports": [port],
            "clusterIP": self.cluster_ip,
            "type": "NodePort" if self.node_port else "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        }
        if self.node_port:
            port["nodePort"] = self.node_port
            spec["externalTrafficPolicy"] = "Cluster"
        metadata = {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        }
        return {"metadata": metadata, "spec": spec, "status": {"loadBalancer": {}}}

    def address(self) -> dict[str, Any]:
        """The object that reserves the cluster IP."""
        labels = {
            "ipaddress.kubernetes.io/ip-family": self._family(),
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
        return {"metadata": {"name": self.cluster_ip, "labels": labels}, "spec": {"parentRef": parent}}

    def _family(self) -> str:
        return f"IPv{ipaddress.ip_address(self.cluster_ip).version}"
