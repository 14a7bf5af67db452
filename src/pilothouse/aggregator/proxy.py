"""Requests for group versions that others serve, passed on with the user's identity.

The server behind is reached by its service, under the name ``<service>.<namespace>.svc``. Redirects are refused, so
that nobody sends clients with their credentials elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from pilothouse.aggregator.passing import RequestPassing, identity_headers
from pilothouse.aggregator.remote import RemoteApi
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.filters.types import answered
from pilothouse.machinery.user import User
from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.messages import Response
from pilothouse.registry.service_routing import Located, ServiceResolver

_MOST_KEPT: Final = 1000
_UNAVAILABLE: Final = b"service unavailable\n"
_DISCOVERY_SECONDS: Final = 5.0
_OWN_USER: Final = User("system:kube-aggregator", groups=("system:masters",))


class Fetched(NamedTuple):
    """A document as another server sent it."""

    status: int
    body: bytes
    etag: str


class _Known(NamedTuple):
    """An APIService, where its service was found, and what was made of both."""

    remote: RemoteApi
    located: Located
    target: Target


class AggregationProxy:
    """Passes requests on. ``cert_file`` and ``key_file`` are what we show; they are read anew when they change."""

    def __init__(
        self,
        client: HttpClient,
        resolver: ServiceResolver,
        *,
        cert_file: str = "",
        key_file: str = "",
        refuse_redirects: bool = True,
        tells_uid: bool = True,
    ) -> None:
        self._client = client
        self._resolver = resolver
        self._cert_file, self._key_file = cert_file, key_file
        self._passing = RequestPassing(client, refuse_redirects=refuse_redirects, tells_uid=tells_uid)
        self._known: dict[str, _Known] = {}
        """By name of the APIService."""

    def handle(self, request: APIRequest, remote: RemoteApi) -> Coroutine[Any, Any, Response]:
        """The answer of the server behind, or a 503 in plain text. No coroutine of its own where all is known."""
        if not remote.is_available:
            return answered(text_response(503, _UNAVAILABLE))
        known = self._known.get(remote.name)
        if known is None or known.remote is not remote or not self._resolver.is_current(known.located):
            return self._find_and_pass(request, remote)
        if request.info.is_resource:
            return self._passing.pass_on(request, known.target)
        return self._pass(request, known.target)

    async def _find_and_pass(self, request: APIRequest, remote: RemoteApi) -> Response:
        try:
            target = await self._find(remote)
        except OutgoingError:
            return text_response(503, _UNAVAILABLE)
        return await self._pass(request, target)

    def _pass(self, request: APIRequest, target: Target) -> Coroutine[Any, Any, Response]:
        if _is_discovery(request):
            return self._passing.pass_on_within(_DISCOVERY_SECONDS, request, target)
        return self._passing.pass_on(request, target)

    def renew(self) -> None:
        """Our certificate is another one: no connection that was made with the old one serves again."""
        self._client.renew()

    async def check(self, remote: RemoteApi) -> None:
        """Ask for the discovery document, which every such server has. Raises OutgoingError."""
        target = await self._find(remote)
        url = f"https://{target.authority}{remote.path}"
        headers = [(b"Host", target.authority.encode()), (b"User-Agent", b"Go-http-client/1.1")]
        outbound = Outbound("GET", remote.path.encode(), headers + identity_headers(_OWN_USER))
        try:
            async with asyncio.timeout(_DISCOVERY_SECONDS):
                reply = await self._client.send(target, outbound)
                await reply.close()
        except TimeoutError:
            why = f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
            raise OutgoingError(f"failing or missing response from {url}: {why}") from None
        except OutgoingError as error:
            raise OutgoingError(f'failing or missing response from {url}: Get "{url}": {error}') from None
        if not 200 <= reply.status < 300:
            why = f"bad status from {url}: {reply.status}"
            raise OutgoingError(f"failing or missing response from {url}: {why}")

    async def fetch(
        self, remote: RemoteApi, path: str, accept: str, limit: int, *, user: User = _OWN_USER, etag: str = ""
    ) -> Fetched:
        """A document of the server behind, asked for as ourselves. Raises OutgoingError, TimeoutError, BodyTooLarge."""
        target = await self._find(remote)
        headers = [(b"Host", target.authority.encode())]
        headers += [(b"Accept", accept.encode())] if accept else []
        headers += [(b"If-None-Match", etag.encode("latin-1"))] if etag else []
        async with asyncio.timeout(_DISCOVERY_SECONDS):
            reply = await self._client.send(target, Outbound("GET", path.encode(), headers + identity_headers(user)))
            try:
                return Fetched(reply.status, await reply.read(limit), reply.head.get(b"etag").decode("latin-1"))
            finally:
                await reply.close()

    async def _find(self, remote: RemoteApi) -> Target:
        located = await self._resolver.locate(remote.namespace, remote.service, remote.port)
        known = self._known.get(remote.name)
        if known is not None and known.remote is remote and known.located.address == located.address:
            target = known.target
        else:
            target = Target(*located.address, remote.tls(self._cert_file, self._key_file))
        if known is not None and known.target == target:
            target = known.target  # what connections are kept by is then found by its identity
        elif len(self._known) >= _MOST_KEPT:
            self._known.clear()
        self._known[remote.name] = _Known(remote, located, target)
        return target


def _is_discovery(request: APIRequest) -> bool:
    return not request.info.is_resource and len(request.path.strip("/").split("/")) == 3
