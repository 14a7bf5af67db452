"""Requests passed on to peers, and the questions that this server asks them itself.

A peer is reached at the address that it keeps in the store for this, and shows a certificate for
``kubernetes.default.svc`` that ``--peer-ca-file`` vouches for. What a peer sent is never passed on again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from pilothouse.aggregator.passing import RequestPassing, identity_headers
from pilothouse.aggregator.peers.metrics import ENDPOINT_RESOLUTION, PeerMetrics
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.machinery import errors, large_json
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.machinery.user import User
from pilothouse.machinery.workers import weighed
from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.dialing import OutgoingError, Target, Tls
from pilothouse.net.messages import Response

_SERVER_NAME: Final = "kubernetes.default.svc"
_OWN_USER: Final = User("system:apiserver", uid="system:apiserver", groups=("system:authenticated",))
_EXTRA: Final = ((b"X-Kubernetes-Peer-Proxied", b"true"),)
_DISCOVERY_SECONDS: Final = 10.0
_LIMIT: Final = 16 << 20
FindEndpoint = Callable[[str], Awaitable[tuple[str, int] | None]]
"""The host and port of a peer by its identity; None where it has none now."""


class PeerProxy:
    """Passes requests on to peers. The certificate it shows is read anew when its files change."""

    def __init__(
        self,
        client: HttpClient,
        find_endpoint: FindEndpoint,
        metrics: PeerMetrics,
        *,
        authorities_file: str,
        cert_file: str,
        key_file: str,
        choose: Callable[[Sequence[Target]], Target] = random.choice,
    ) -> None:
        self._client, self._find_endpoint, self._metrics, self._choose = client, find_endpoint, metrics, choose
        self._passing = RequestPassing(client, refuse_redirects=False, extra=_EXTRA)
        self._tls = Tls(
            authorities_file=authorities_file, server_name=_SERVER_NAME, cert_file=cert_file, key_file=key_file
        )

    async def handle(self, request: APIRequest, resource: GroupVersionResource, peers: Sequence[str]) -> Response:
        """The answer of one of the peers; a 503 where none can be found."""
        found = [target for peer in peers if (target := await self._find(peer)) is not None]
        if not found:
            self._metrics.count_error(ENDPOINT_RESOLUTION, resource)
            why = "Error getting ip and port info of the remote server while proxying"
            return error_response(request, errors.unavailable(why))
        response = await self._passing.pass_on(request, self._choose(found))
        self._metrics.count_passed(response.status, resource)
        return response

    def renew(self) -> None:
        """Our certificate is another one: no connection that was made with the old one serves again."""
        self._client.renew()

    async def fetch(self, peer: str, path: str, accept: str) -> dict[str, Any]:
        """A document of a peer. Raises LookupError for one without an address, OutgoingError, TimeoutError."""
        target = await self._find(peer)
        if target is None:
            raise LookupError(f"the address of {peer} is not known")
        headers = [(b"Host", target.authority.encode()), (b"Accept", accept.encode()), *identity_headers(_OWN_USER)]
        async with asyncio.timeout(_DISCOVERY_SECONDS):
            reply = await self._client.send(target, Outbound("GET", path.encode(), headers + list(_EXTRA)))
            try:
                body = await reply.read(_LIMIT)
            finally:
                await reply.close()
        self._metrics.count_passed(reply.status)
        if reply.status != 200:
            raise OutgoingError(f"discovery request failed with status: {reply.status}")
        document: dict[str, Any] = await weighed(len(body), large_json.loads, body)
        return document

    async def _find(self, peer: str) -> Target | None:
        endpoint = await self._find_endpoint(peer)
        return None if endpoint is None else Target(*endpoint, self._tls)
