"""Where a node's kubelet listens, as the node's status tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupResource
from pilothouse.registry.store.store import Store

PREFERRED_ADDRESSES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
DEFAULT_PORT: Final = 10250


@dataclass(frozen=True, slots=True)
class Kubelet:
    """An address to connect to."""

    host: str
    port: int

    @property
    def authority(self) -> str:
        """Host and port as a URL has them."""
        return join_host_port(self.host, self.port)


def join_host_port(host: str, port: int | str) -> str:
    """``10.0.0.1:80``, ``[fd00::1]:80``."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def find_kubelet(nodes: Store, name: str, asking: GroupResource) -> Kubelet:
    """The kubelet of a node. A missing node is reported as one of the resource that the request is about."""
    try:
        entry = await nodes.get("", name)
    except errors.StatusError as error:
        raise (errors.not_found(asking, name) if error.code == 404 else error) from None
    status: dict[str, Any] = orjson.loads(entry.data).get("status") or {}
    addresses = status.get("addresses") or []
    for kind in PREFERRED_ADDRESSES:
        for address in addresses:
            if address.get("type") == kind:
                endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
                port = endpoint.get("Port", 0)
                return Kubelet(address.get("address", ""), port if port > 0 else DEFAULT_PORT)
    listed = " ".join(f"{{{a.get('type', '')} {a.get('address', '')}}}" for a in addresses)
    raise errors.generic(f"no preferred addresses found; known addresses: [{listed}]")
