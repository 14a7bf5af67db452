"""Requests for group versions that others serve, passed on with the user's identity.

The server behind is reached by its service, under the name ``<service>.<namespace>.svc``. It believes who the user is
because we show a certificate that it trusts (``--proxy-client-cert-file``); what the client itself sent under the names
of these headers never travels. Redirects are refused, so that nobody sends clients with their credentials elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple
from urllib.parse import quote as escape

from pilothouse.aggregator.remote import RemoteApi
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.machinery.user import User
from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.client.head import Headers
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy import Destination, forward, pass_upgrade, wants_upgrade
from pilothouse.registry.service_routing import Address, ServiceResolver

_MOST_KEPT: Final = 1000
_UNAVAILABLE: Final = b"service unavailable\n"
_DISCOVERY_SECONDS: Final = 5.0
_SAFE: Final = "/:@!$&'()*+,;=-._~"
_NOT_IN_NAMES: Final = re.compile(rb"[^!#$&'*+\-.0-9A-Z^_`a-z|~]")
_OWN_USER: Final = User("system:kube-aggregator", groups=("system:masters",))


class Fetched(NamedTuple):
    """A document as another server sent it."""

    status: int
    body: bytes
    etag: str


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
        self._refuse_redirects = refuse_redirects
        self._tells_uid = tells_uid
        self._targets: dict[str, tuple[RemoteApi, Address, Target]] = {}
        """By name of the APIService; what was made of one and the address of its service."""
        self._identities: dict[int, tuple[User, Headers]] = {}
        """By the identity of a user, whom the caches of authentication share between requests."""

    async def handle(self, request: APIRequest, remote: RemoteApi) -> Response:
        """The answer of the server behind, or a 503 in plain text."""
        if not remote.is_available:
            return text_response(503, _UNAVAILABLE)
        try:
            target = await self._find(remote)
        except OutgoingError:
            return text_response(503, _UNAVAILABLE)
        is_upgrade = b"connection" in request.headers and wants_upgrade(request)
        if request.seat is not None and (is_upgrade or request.info.verb == "watch"):
            request.seat.release()  # what may last for hours keeps nobody else out, however long its answer takes
        try:
            destination = self._destination(request, target)
            if is_upgrade:
                return await pass_upgrade(self._client, request, destination)
            if not _is_discovery(request):
                return await forward(self._client, request, destination)
            await ensure_task()
            async with asyncio.timeout(_DISCOVERY_SECONDS):
                return await forward(self._client, request, destination)
        except TimeoutError:
            return text_response(503, b"error trying to reach service: context deadline exceeded\n")
        except OutgoingError as error:
            prefix = "" if is_upgrade else "error trying to reach service: "
            return text_response(503, f"{prefix}{error}\n".encode())

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
        address = await self._resolver.resolve(remote.namespace, remote.service, remote.port)
        known = self._targets.get(remote.name)
        if known is not None and known[0] is remote and known[1] == address:
            return known[2]
        if len(self._targets) >= _MOST_KEPT:
            self._targets.clear()
        target = Target(*address, remote.tls(self._cert_file, self._key_file))
        self._targets[remote.name] = remote, address, target
        return target

    def _identity(self, user: User) -> Headers:
        known = self._identities.get(id(user))
        if known is not None and known[0] is user:
            return known[1]
        if len(self._identities) >= _MOST_KEPT:
            self._identities.clear()
        headers = identity_headers(user, tells_uid=self._tells_uid)
        self._identities[id(user)] = user, headers
        return headers

    def _destination(self, request: APIRequest, target: Target) -> Destination:
        raw = request.raw_path
        # What was judged is what is asked for: escapes are written anew, so that both sides see the same segments.
        path = raw if "%" not in raw else escape(request.path, _SAFE)
        extra = [*self._identity(request.user), (b"Audit-Id", request.audit_id.encode("latin-1"))]
        return Destination(
            target,
            path.encode("latin-1"),
            request.query.encode("latin-1"),
            host=target.authority.encode(),
            scheme="https",
            authority=target.authority,
            extra=extra,
            refuse_redirects=self._refuse_redirects,
        )


def identity_headers(user: User, *, tells_uid: bool = True) -> Headers:
    """Who asks, in the headers that aggregated servers read."""
    headers: Headers = [(b"X-Remote-User", user.name.encode())]
    if user.uid and tells_uid:
        headers.append((b"X-Remote-Uid", user.uid.encode()))
    headers += [(b"X-Remote-Group", group.encode()) for group in user.groups]
    for key, values in user.extra.items():
        name = b"X-Remote-Extra-" + _NOT_IN_NAMES.sub(lambda match: b"%%%02X" % match[0][0], key.encode())
        headers += [(name, value.encode()) for value in values]
    return headers


def _is_discovery(request: APIRequest) -> bool:
    return not request.info.is_resource and len(request.path.strip("/").split("/")) == 3
