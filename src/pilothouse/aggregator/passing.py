"""Passing a request on to another API server as the user who made it.

The other server believes who the user is because we show a certificate that it trusts (``--proxy-client-cert-file``);
what the client itself sent under the names of these headers never travels.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote as escape

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.machinery.spans import propagation_headers
from pilothouse.machinery.user import User
from pilothouse.net.client import FixedHeaders, HttpClient, Outbound
from pilothouse.net.client.head import Headers
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import Response
from pilothouse.net.request_head import RequestLine
from pilothouse.net.reverse_proxy import Destination, pass_upgrade, wants_upgrade
from pilothouse.net.reverse_proxy.forwarding import (
    add_body,
    bring_back,
    forwarded_headers,
    forwarded_uri,
    whole_answer,
)
from pilothouse.net.reverse_proxy.headers import request_headers

_AUDIT_ID: Final = b"Audit-Id"
_SHORT: Final = 512
"""What was asked for is kept up to this length: a connection that waits is not to hold megabytes."""
_PLAIN_ID: Final = re.compile(rb"[-0-9A-Za-z]+").fullmatch
_SCHEME: Final = "https"
_SAFE: Final = "/:@!$&'()*+,;=-._~"
_NOT_IN_NAMES: Final = re.compile(rb"[^!#$&'*+\-.0-9A-Z^_`a-z|~]")


class _Asked(NamedTuple):
    """What a request line is made into: what is sent of it, and the whole head for it up to the value of the id."""

    line: RequestLine
    sent: bytes
    uri: tuple[bytes, bytes]
    beginning: bytes


class _Prepared:
    """Headers that were made for a request, and all that they were made of; and what was asked for with them last."""

    __slots__ = ("_asked", "connection", "fixed", "headers", "target", "user")

    def __init__(self, request: APIRequest, target: Target, fixed: FixedHeaders) -> None:
        self.user, self.target, self.connection = request.user, target, request.connection
        self.headers = dict(request.headers)
        self.fixed = fixed
        self._asked: _Asked | None = None

    def outbound(self, request: APIRequest, target: Target) -> Outbound | None:
        """The request as it goes out: what was encoded for the last one, if it asked for the same, and its own id.

        None where not the same headers would be made for this request.
        """
        if (
            self.user is not request.user
            or self.target is not target
            or self.connection is not request.connection
            or self.headers != request.headers
        ):
            return None
        asked = self._asked
        if asked is None or asked.line is not request.line:
            asked = self._ask(request)
            if len(asked.sent) <= _SHORT:
                self._asked = asked
        traced, audit_id, encoded = propagation_headers(), request.audit_id.encode("latin-1"), b""
        if not traced and not request.has_body and (b"audit-id" not in request.headers or _PLAIN_ID(audit_id)):
            encoded = b"%b%b\r\n\r\n" % (asked.beginning, audit_id)  # an id of our own, or one that looks like it
        headers = [asked.uri, (_AUDIT_ID, audit_id)]
        if traced:
            headers += _encode(traced)
        return Outbound(request.method, asked.sent, headers, b"", None, None, self.fixed, encoded)

    def _ask(self, request: APIRequest) -> _Asked:
        path = sent = _path(request)
        if request.query:
            sent = b"%b?%b" % (path, request.query.encode("latin-1"))
        uri = (b"X-Forwarded-Uri", forwarded_uri("", path))
        head = Outbound(request.method, sent, [uri], fixed=self.fixed).head()
        return _Asked(request.line, sent, uri, b"%b%b: " % (head.removesuffix(b"\r\n"), _AUDIT_ID))


class RequestPassing:
    """Brings requests to other servers and their answers back. ``extra`` headers go along with each.

    Nearly all headers of a request are those of the one before on the same connection: they are encoded once for as
    long as the client sends the same, is the same user and asks for what the same server has.
    """

    def __init__(
        self,
        client: HttpClient,
        *,
        refuse_redirects: bool,
        tells_uid: bool = True,
        extra: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self._client = client
        self._refuse_redirects, self._tells_uid, self._extra = refuse_redirects, tells_uid, extra

    async def pass_on(self, request: APIRequest, target: Target) -> Response:
        """The other server's answer, or a 503 in plain text."""
        is_upgrade = b"connection" in request.headers and wants_upgrade(request)
        if request.seat is not None and (is_upgrade or request.info.verb == "watch"):
            request.seat.release()  # what may last for hours keeps nobody else out, however long its answer takes
        try:
            if is_upgrade:
                return await pass_upgrade(self._client, request, self._destination(request, target))
            outbound = self._outbound(request, target)
            if request.has_body:
                await add_body(outbound, request)
            reply = await self._client.send(target, outbound)
            return whole_answer(reply) or await bring_back(request, self._destination(request, target), reply)
        except OutgoingError as error:
            prefix = "" if is_upgrade else "error trying to reach service: "
            return text_response(503, f"{prefix}{error}\n".encode())

    async def pass_on_within(self, seconds: float, request: APIRequest, target: Target) -> Response:
        """The same, for which there is so much time."""
        await ensure_task()
        try:
            async with asyncio.timeout(seconds):
                return await self.pass_on(request, target)
        except TimeoutError:
            return text_response(503, b"error trying to reach service: context deadline exceeded\n")

    def _destination(self, request: APIRequest, target: Target) -> Destination:
        return Destination(
            target,
            _path(request),
            request.query.encode("latin-1"),
            host=target.authority.encode(),
            scheme=_SCHEME,
            authority=target.authority,
            extra=[*self._claims(request.user), *_of_this_request(request)],
            refuse_redirects=self._refuse_redirects,
        )

    def _outbound(self, request: APIRequest, target: Target) -> Outbound:
        findings = request.block.findings
        prepared: _Prepared | None = findings.get(self)
        outbound = None if prepared is None else prepared.outbound(request, target)
        if outbound is None:
            prepared = findings[self] = self._prepare(request, target)
            outbound = prepared.outbound(request, target)
            assert outbound is not None
        return outbound

    def _prepare(self, request: APIRequest, target: Target) -> _Prepared:
        authority = target.authority.encode()
        sent = [pair for pair in request_headers(request, authority)[1:] if pair[0] != _AUDIT_ID]
        sent += [*forwarded_headers(_SCHEME, target.authority), *self._claims(request.user)]
        return _Prepared(request, target, FixedHeaders(authority, sent))

    def _claims(self, user: User) -> Headers:
        return [*identity_headers(user, tells_uid=self._tells_uid), *self._extra]


def _path(request: APIRequest) -> bytes:
    """What was judged is what is asked for: escapes are written anew, so that both sides see the same segments."""
    raw = request.raw_path
    return raw.encode("latin-1") if "%" not in raw else escape(request.path, _SAFE).encode("latin-1")


def _of_this_request(request: APIRequest) -> Headers:
    return [(_AUDIT_ID, request.audit_id.encode("latin-1")), *_encode(propagation_headers())]


def _encode(headers: Mapping[str, str]) -> Headers:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


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
