"""Passing a request on to another API server as the user who made it.

The other server believes who the user is because we show a certificate that it trusts (``--proxy-client-cert-file``);
what the client itself sent under the names of these headers never travels.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote as escape

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.machinery.spans import propagation_headers
from pilothouse.machinery.user import User
from pilothouse.net.client import HttpClient
from pilothouse.net.client.head import Headers
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy import Destination, forward, pass_upgrade, wants_upgrade

_MOST_KEPT: Final = 1000
_SAFE: Final = "/:@!$&'()*+,;=-._~"
_NOT_IN_NAMES: Final = re.compile(rb"[^!#$&'*+\-.0-9A-Z^_`a-z|~]")


class RequestPassing:
    """Brings requests to other servers and their answers back."""

    def __init__(self, client: HttpClient, *, refuse_redirects: bool, tells_uid: bool = True) -> None:
        self._client = client
        self._refuse_redirects, self._tells_uid = refuse_redirects, tells_uid
        self._identities: dict[int, tuple[User, Headers]] = {}
        """By the identity of a user, whom the caches of authentication share between requests."""

    async def pass_on(
        self,
        request: APIRequest,
        target: Target,
        extra: Sequence[tuple[bytes, bytes]] = (),
        *,
        seconds: float | None = None,
    ) -> Response:
        """The other server's answer, or a 503 in plain text. ``extra`` headers go along; ``seconds`` is its time."""
        is_upgrade = b"connection" in request.headers and wants_upgrade(request)
        if request.seat is not None and (is_upgrade or request.info.verb == "watch"):
            request.seat.release()  # what may last for hours keeps nobody else out, however long its answer takes
        try:
            destination = self._destination(request, target, extra)
            if is_upgrade:
                return await pass_upgrade(self._client, request, destination)
            if seconds is None:
                return await forward(self._client, request, destination)
            await ensure_task()
            async with asyncio.timeout(seconds):
                return await forward(self._client, request, destination)
        except TimeoutError:
            return text_response(503, b"error trying to reach service: context deadline exceeded\n")
        except OutgoingError as error:
            prefix = "" if is_upgrade else "error trying to reach service: "
            return text_response(503, f"{prefix}{error}\n".encode())

    def _identity(self, user: User) -> Headers:
        known = self._identities.get(id(user))
        if known is not None and known[0] is user:
            return known[1]
        if len(self._identities) >= _MOST_KEPT:
            self._identities.clear()
        headers = identity_headers(user, tells_uid=self._tells_uid)
        self._identities[id(user)] = user, headers
        return headers

    def _destination(self, request: APIRequest, target: Target, extra: Sequence[tuple[bytes, bytes]]) -> Destination:
        raw = request.raw_path
        # What was judged is what is asked for: escapes are written anew, so that both sides see the same segments.
        path = raw if "%" not in raw else escape(request.path, _SAFE)
        traced = [(name.encode(), value.encode("latin-1")) for name, value in propagation_headers().items()]
        return Destination(
            target,
            path.encode("latin-1"),
            request.query.encode("latin-1"),
            host=target.authority.encode(),
            scheme="https",
            authority=target.authority,
            extra=[*self._identity(request.user), (b"Audit-Id", request.audit_id.encode("latin-1")), *traced, *extra],
            refuse_redirects=self._refuse_redirects,
        )


def identity_headers(user: User, *, tells_uid: bool = True) -> Headers:
    """Who asks, in the headers that other API servers read."""
    headers: Headers = [(b"X-Remote-User", user.name.encode())]
    if user.uid and tells_uid:
        headers.append((b"X-Remote-Uid", user.uid.encode()))
    headers += [(b"X-Remote-Group", group.encode()) for group in user.groups]
    for key, values in user.extra.items():
        name = b"X-Remote-Extra-" + _NOT_IN_NAMES.sub(lambda match: b"%%%02X" % match[0][0], key.encode())
        headers += [(name, value.encode()) for value in values]
    return headers
