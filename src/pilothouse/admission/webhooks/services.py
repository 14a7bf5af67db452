"""Finding services: by cluster address, or by one of their endpoints where the server routes by itself."""

from __future__ import annotations

import random
from typing import Any, Final

from pilothouse.admission.environment import Environment
from pilothouse.machinery.go_quote import quote
from pilothouse.net.outgoing import OutgoingError

_SUFFIX: Final = ".svc"
_ROUTED: Final = ("ClusterIP", "LoadBalancer", "NodePort")


class ServiceResolver:
    """Where ``name.namespace.svc`` is."""

    def __init__(self, environment: Environment, *, by_endpoints: bool = False) -> None:
        self._services = environment.objects("", "v1", "services")
        self._slices = environment.objects("discovery.k8s.io", "v1", "endpointslices")
        self._by_endpoints = by_endpoints
        self._random = random.Random()

    async def dial(self, host: str, port: int) -> tuple[str, int] | None:
        """The address to connect to; raises OutgoingError."""
        name, _, rest = host.partition(".")
        namespace = rest.removesuffix(_SUFFIX)
        service = await self._services.find(namespace, name)
        if service is None:
            raise OutgoingError(f"service {quote(name)} not found")
        spec = service.get("spec") or {}
        if self._by_endpoints:
            return await self._find_endpoint(namespace, name, spec, port)
        return _cluster_address(name, spec, port)

    async def _find_endpoint(self, namespace: str, name: str, spec: dict[str, Any], port: int) -> tuple[str, int]:
        if spec.get("type", "ClusterIP") not in _ROUTED:
            raise OutgoingError(f"unsupported service type {quote(spec.get('type', ''))}")
        wanted = _find_port(name, spec, port).get("name", "")
        await self._slices.ready()
        found = [
            (endpoint["addresses"][0], each["port"])
            for item in self._slices.list(namespace)
            if (item["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
            for each in item.get("ports") or ()
            if each.get("name", "") == wanted and each.get("port")
            for endpoint in item.get("endpoints") or ()
            if endpoint.get("addresses") and (endpoint.get("conditions") or {}).get("ready") is not False
        ]
        if not found:
            raise OutgoingError(f"no endpoints available for service {quote(name)}")
        return self._random.choice(found)


def _cluster_address(name: str, spec: dict[str, Any], port: int) -> tuple[str, int]:
    kind = spec.get("type", "ClusterIP")
    if kind == "ExternalName":
        return str(spec.get("externalName", "")), port
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        raise OutgoingError('cannot route to service with ClusterIP "None"')
    if kind not in _ROUTED:
        raise OutgoingError(f"unsupported service type {quote(kind)}")
    return str(spec.get("clusterIP", "")), int(_find_port(name, spec, port)["port"])


def _find_port(name: str, spec: dict[str, Any], port: int) -> dict[str, Any]:
    for each in spec.get("ports") or ():
        if each.get("port") == port:
            found: dict[str, Any] = each
            return found
    raise OutgoingError(f"no service port {port} found for service {quote(name)}")
