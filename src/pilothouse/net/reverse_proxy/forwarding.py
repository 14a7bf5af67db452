"""Sending a request on and bringing the answer back, both streamed.

    client → Request → headers that travel → HttpClient → backend
    client ← Response ← headers that travel ← Reply ←

Path and query go on byte for byte. Nothing is buffered beyond what is in flight, except HTML whose links are corrected
and small answers, which are sent in one piece. A backend that breaks off in the middle breaks off the client's answer
too; a client that leaves ends the request to the backend.
"""

from __future__ import annotations

import asyncio
import posixpath
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pilothouse.net.client import HttpClient, Outbound, Reply
from pilothouse.net.client.head import Headers
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.messages import BodyWriter, ClientDisconnected, Request, Response
from pilothouse.net.reverse_proxy.headers import announced, passing, reply_headers, request_headers
from pilothouse.net.reverse_proxy.rewriting import MAX_HTML, Rewriter

_WHOLE: Final = 64 * 1024  # up to here, an answer is read whole and sent in one piece
_AWAITED_BODY: Final = 256 * 1024  # up to here, the server below has waited for the request's body already
_HTML: Final = b"text/html"
_PAGES: Final = ThreadPoolExecutor(2, "pages")
"""Corrects links in pages. Others who need a thread do not wait for them."""
_REDIRECTED: Final = b"the backend attempted to redirect this request, which is not permitted"


class BadLocation(OutgoingError):
    """The backend redirects to what is no URL."""


class BackendBroke(ClientDisconnected):
    """The backend broke off its answer; the client's ends in the same way."""


@dataclass(slots=True)
class Destination:
    """Where a request goes."""

    target: Target
    path: bytes
    """As it is sent, escapes and all."""
    query: bytes = b""
    host: bytes | None = None
    """The Host header; None for the one the client sent."""
    prefix: str = ""
    """What stands before ``path`` in the client's URL."""
    scheme: str = ""
    """With ``authority``: what links to the backend are made to begin with, and the backend is told."""
    authority: str = ""
    extra: Headers = field(default_factory=list)
    """Further headers, such as the user's identity."""
    refuse_redirects: bool = False

    @property
    def request_target(self) -> bytes:
        """Path and query as the request line has them."""
        path = self.path or b"/"
        return path + b"?" + self.query if self.query else path


async def forward(client: HttpClient, request: Request, destination: Destination) -> Response:
    """Pass a request on. Raises OutgoingError where there is no answer, and BadLocation."""
    headers = request_headers(request, _host(request, destination))
    headers += forwarded_headers(destination.scheme, destination.authority)
    headers.append((b"X-Forwarded-Uri", forwarded_uri(destination.prefix, destination.path)))
    outbound = Outbound(request.method, destination.request_target, headers + destination.extra)
    if request.has_body:
        await add_body(outbound, request)
    reply = await client.send(destination.target, outbound)
    return whole_answer(reply) or await bring_back(request, destination, reply)


def whole_answer(reply: Reply) -> Response | None:
    """An answer that goes back as it is: all of it is here, and nothing in it leads anywhere. None for any other."""
    head, whole = reply.head, reply.whole
    if whole is None and (not reply.body.complete or reply.body.size != head.length):
        return None
    leads_somewhere = head.findings.get(whole_answer)
    if leads_somewhere is None:
        leads_somewhere = b"location" in head or head.get(b"content-type").startswith(_HTML)
        head.findings[whole_answer] = leads_somewhere
    if leads_somewhere:
        return None
    return Response(head.status, reply.body.take() if whole is None else whole, b"", reply_headers(head))


async def bring_back(request: Request, destination: Destination, reply: Reply) -> Response:
    """What the client gets of an answer, which is given up if the client goes. Raises OutgoingError and BadLocation."""
    request.on_disconnect(reply.drop)
    try:
        return await _answer(request, destination, _host(request, destination), reply)
    except BaseException:
        await reply.abort()
        raise


def _host(request: Request, destination: Destination) -> bytes:
    return request.host if destination.host is None else destination.host


def forwarded_headers(scheme: str, authority: str) -> Headers:
    """What tells the backend as whom it was asked."""
    headers: Headers = []
    if authority:
        headers.append((b"X-Forwarded-Host", authority.encode()))
    if scheme:
        headers.append((b"X-Forwarded-Proto", scheme.encode()))
    return headers


def forwarded_uri(prefix: str, raw: bytes) -> bytes:
    """What tells the backend which path the client asked for."""
    if not prefix and raw.startswith(b"/") and b"//" not in raw and b"/." not in raw:
        return raw
    path = raw.decode("latin-1")
    uri = posixpath.normpath(posixpath.join(prefix or "/", path.lstrip("/")))
    if path.endswith("/") and not uri.endswith("/"):
        uri += "/"
    return uri.encode("latin-1")


async def add_body(outbound: Outbound, request: Request) -> None:
    """Send the body of a request along: whole if it is short, or else as it comes."""
    length = request.headers.get(b"content-length")
    if length is None or b"transfer-encoding" in request.headers:
        outbound.body = request.body_pieces()
        _add_trailers(outbound, request)
    elif int(length) <= _AWAITED_BODY:
        outbound.body = await request.body(_AWAITED_BODY)
    else:
        outbound.body, outbound.length = request.body_pieces(), int(length)


def _add_trailers(outbound: Outbound, request: Request) -> None:
    """Those that were announced, as in Go."""
    names = announced(b",".join(request.header_values(b"trailer")))
    if names:
        outbound.headers.append((b"Trailer", b",".join(names)))
        wanted = frozenset(names)
        outbound.trailers = lambda: [pair for pair in passing(request.trailers) if pair[0] in wanted]


async def _answer(request: Request, destination: Destination, host: bytes, reply: Reply) -> Response:
    head = reply.head
    location = head.get(b"location")
    if destination.refuse_redirects and 300 <= head.status <= 399 and location:
        await reply.abort()
        return Response(502, _REDIRECTED, b"")
    headers = reply_headers(head)
    if location:
        headers = _relocate(headers, _rewriter(destination, host), location)
    elif head.get(b"content-type").partition(b";")[0].strip() == _HTML and request.method != "HEAD":
        return await _correct_html(destination, host, headers, reply)
    return await _pass_on(request, headers, reply)


def _rewriter(destination: Destination, host: bytes) -> Rewriter:
    hosts = frozenset({destination.target.authority, host.decode("latin-1")})
    return Rewriter(destination.prefix, hosts, destination.scheme, destination.authority)


def _relocate(headers: Headers, rewriter: Rewriter, location: bytes) -> Headers:
    try:
        led = rewriter.location(location.decode("latin-1")).encode("latin-1")
    except ValueError as error:
        raise BadLocation(f"error trying to parse Location header: {error}") from None
    return [(name, led if name.lower() == b"location" else value) for name, value in headers]


async def _pass_on(request: Request, headers: Headers, reply: Reply) -> Response:
    length, status = reply.head.length, reply.status
    if request.method == "HEAD" and length is not None:
        await reply.close()
        return Response(status, b"", b"", headers, parts=(), length=length)
    if reply.head.chunked and (reply.trailers or reply.head.get(b"trailer")):
        names = announced(reply.head.get(b"trailer"))
        headers += [(b"Trailer", b", ".join(names))] if names else []
    elif reply.is_complete or (length is not None and length <= _WHOLE):
        body = await reply.read(MAX_HTML)
        await reply.close()
        return Response(status, body, b"", headers)
    return Response(status, b"", b"", headers, stream=lambda writer: copy(reply, writer), length=length or 0)


async def copy(reply: Reply, writer: BodyWriter, begin: bytes = b"") -> None:
    """Write an answer's body as it arrives, at the pace of the client."""
    try:
        writer.write(begin)
        async for piece in reply.pieces():
            writer.write(piece)
            await writer.drain()
        writer.trailers = passing(reply.trailers)
    except OutgoingError as error:
        raise BackendBroke(str(error)) from None
    finally:
        await reply.close()


async def _correct_html(destination: Destination, host: bytes, headers: Headers, reply: Reply) -> Response:
    encoding = reply.head.get(b"content-encoding")
    pieces: list[bytes] = []
    size = 0
    async for piece in reply.pieces():
        pieces.append(piece)
        size += len(piece)
        if size > MAX_HTML:  # larger than any page: passed on as it is
            rest = partial(copy, reply, begin=b"".join(pieces))
            return Response(reply.status, b"", b"", headers, stream=rest)
    await reply.close()
    data, unwanted = b"".join(pieces), threading.Event()
    loop, document = asyncio.get_running_loop(), _rewriter(destination, host).document
    try:
        corrected = await loop.run_in_executor(_PAGES, document, data, encoding, unwanted)
    finally:
        unwanted.set()
    return Response(reply.status, data if corrected is None else corrected, b"", headers)


async def read_beginning(reply: Reply, limit: int) -> bytes:
    """The beginning of a body, such as one that tells why something went wrong."""
    data = b""
    async for piece in reply.pieces():
        data += piece
        if len(data) >= limit:
            break
    return data[:limit]
