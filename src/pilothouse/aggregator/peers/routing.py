"""Which requests go to peers."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from pilothouse.aggregator.peers.apis import PeerApis
from pilothouse.aggregator.peers.proxy import PeerProxy
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.net.messages import Response

_PROXIED: Final = b"x-kubernetes-peer-proxied"


@dataclass(frozen=True, slots=True)
class Peers:
    """The other servers on this store: what only they serve, and the way to them."""

    apis: PeerApis
    proxy: PeerProxy

    def route(self, request: APIRequest) -> Coroutine[Any, Any, Response] | None:
        """The answer of a peer, where nobody else can answer; None for every other request."""
        info = request.info
        if not info.is_resource:
            return None
        resource = GroupVersionResource(info.group, info.version, info.resource)
        peers = self.apis.found.get(resource)
        if peers is None or request.headers.get(_PROXIED) == b"true":
            return None
        return self.proxy.handle(request, resource, peers)
