"""How this server reaches kubelets, pods and services: by which client, with which certificates, at which address.

Made once from the flags ``--kubelet-…`` and the egress configuration, and given to the endpoints that connect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from pilothouse.endpoints.subresources.link_metrics import LinkMetrics
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.machinery.objects import Object
from pilothouse.net.client import HttpClient
from pilothouse.net.dialing import Guard, Target, Tls, is_global_unicast
from pilothouse.registry.store.store import Store

PREFERRED_ADDRESSES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
DEFAULT_PORT: Final = 10250
ANYBODY: Final = Tls(insecure=True)
"""For pods and services, whose certificates nobody vouches for."""


@dataclass(frozen=True, slots=True)
class Links:
    """The ways into the cluster."""

    client: HttpClient = field(default_factory=HttpClient)
    kubelet_tls: Tls = ANYBODY
    kubelet_port: int = DEFAULT_PORT
    preferred_addresses: Sequence[str] = PREFERRED_ADDRESSES
    guard: Guard = is_global_unicast
    """Which addresses pods, services and nodes may have for proxies."""
    metrics: LinkMetrics = field(default_factory=LinkMetrics)
    max_bytes_per_second: int = 0
    """Of either direction of a connection that went on in another protocol; 0 does not limit them."""

    async def find_kubelet(self, nodes: Store, name: str, asking: GroupResource) -> Kubelet:
        """The kubelet of a node. A missing node is reported as one of the resource that the request is about."""
        try:
            entry = await nodes.get("", name)
        except errors.StatusError as error:
            raise (errors.not_found(asking, name) if error.code == 404 else error) from None
        status: Object = orjson.loads(entry.data).get("status") or {}
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        port = endpoint.get("Port", 0)
        host = self._preferred(status.get("addresses") or [])
        target = Target(host, port if port > 0 else self.kubelet_port, self.kubelet_tls)
        return Kubelet(target, frozenset(status.get("declaredFeatures") or ()))

    def _preferred(self, addresses: list[Object]) -> str:
        for kind in self.preferred_addresses:
            for address in addresses:
                if address.get("type") == kind:
                    return str(address.get("address", ""))
        listed = " ".join(f"{{{a.get('type', '')} {a.get('address', '')}}}" for a in addresses)
        raise errors.generic(f"no preferred addresses found; known addresses: [{listed}]")


@dataclass(frozen=True, slots=True)
class Kubelet:
    """Where a kubelet listens, and what it says it can do."""

    target: Target
    features: frozenset[str] = frozenset()

    @property
    def url(self) -> str:
        """What its paths are put behind."""
        return f"https://{self.target.authority}"

    def trusting_anybody(self) -> Kubelet:
        """The same, whoever vouches for its certificate."""
        tls = self.target.tls or ANYBODY
        insecure = replace(tls, insecure=True, authorities=b"", authorities_file="")
        return replace(self, target=replace(self.target, tls=insecure))
