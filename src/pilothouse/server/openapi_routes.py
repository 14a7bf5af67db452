"""``/openapi/v2`` and ``/openapi/v3``: the documents of everything a chain of servers serves.

The answers are those of Go's ``http.ServeContent``: whatever the method, with an ETag, and 304 for a client that has
the document already. A version 3 document asked for by its hash may be cached for ever; an old hash is redirected to
the new one. The index has no content type of its own: Go takes it for plain text.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response
from pilothouse.openapi.operations import MediaTypes
from pilothouse.openapi.plain_paths import plain_operations
from pilothouse.openapi.registry import JSON, PROTOBUF, Encoded, OpenApi
from pilothouse.openapi.sources import BuiltInVersion, PlainPaths
from pilothouse.server.generic import GenericAPIServer

_INDEX_TYPE: Final = b"text/plain; charset=utf-8"
_CONTENT_TYPES: Final = {
    (2, JSON): b"application/json",
    (3, JSON): b"application/json",
    (2, PROTOBUF): b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    (3, PROTOBUF): b"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
}
_VARY: Final = (b"vary", b"Accept")
_YEAR: Final = 365 * 24 * 3600


def install_openapi(server: GenericAPIServer, *, cbor: bool = False, logs: bool = False) -> OpenApi:
    """Serve the documents of all that this server and its delegates serve now. More can be added to the result."""
    openapi = OpenApi()
    media = MediaTypes(cbor)
    rows = {gv: installed.version for each in server.chain() for gv, installed in each.versions.items()}
    for gv, row in rows.items():
        openapi.set_group_version(gv, BuiltInVersion(row, media))
    groups = sorted({gv.group for gv in rows if gv.group})
    for name, operations in plain_operations(groups, media, logs=logs).items():
        openapi.set_document(name, PlainPaths(operations))
    install_documents(server, openapi)
    return openapi


def install_documents(server: GenericAPIServer, openapi: OpenApi) -> None:
    """Add the routes."""

    async def serve_swagger(request: APIRequest) -> Response:
        form = _negotiate(request, 2)
        if form is None:
            return Response(406, b"", b"", [_VARY])
        return _content(request, await openapi.swagger(form), _CONTENT_TYPES[2, form], [_VARY])

    async def serve_index(request: APIRequest) -> Response:
        return Response(200, openapi.index().body, _INDEX_TYPE, [(b"last-modified", _http_date(time.time()))])

    async def serve_document(request: APIRequest) -> Response:
        return await _serve_document(openapi, request)

    server.routes.add("/openapi/v2", serve_swagger)
    server.routes.add("/openapi/v3", serve_index)
    server.routes.add_prefix("/openapi/v3/", serve_document)


async def _serve_document(openapi: OpenApi, request: APIRequest) -> Response:
    name = request.path.removeprefix("/openapi/v3/")
    form = _negotiate(request, 3)
    found = await openapi.document(name, form or JSON)
    if found is None:
        return Response(404, b"", b"")
    if form is None:
        return Response(406, b"", b"", [_VARY])
    content_type = _CONTENT_TYPES[3, form]
    asked = request.options.text("hash")
    if not asked:
        return _content(request, found, content_type, [_VARY])
    if asked != found.etag:
        location = openapi.address(name).encode()
        return Response(301, b"", content_type, [_VARY, (b"etag", _quoted(found.etag)), (b"location", location)])
    expires = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(time.time() + _YEAR)).encode()
    headers = [_VARY, (b"cache-control", b"public, immutable"), (b"expires", expires)]
    return _content(request, found, content_type, headers)


def _content(request: APIRequest, found: Encoded, content_type: bytes, headers: list[tuple[bytes, bytes]]) -> Response:
    etag = _quoted(found.etag)
    headers.append((b"etag", etag))
    if _has_already(request.headers.get(b"if-none-match", b""), etag):
        return Response(304, b"", b"", headers)
    headers.append((b"last-modified", _http_date(found.modified)))
    return Response(200, found.body, content_type, headers)


def _has_already(known: bytes, etag: bytes) -> bool:
    return any(each.strip().removeprefix(b"W/") in (etag, b"*") for each in known.split(b",")) if known else False


def _quoted(etag: str) -> bytes:
    return b'"%b"' % etag.encode()


def _http_date(seconds: float) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


def _negotiate(request: APIRequest, version: int) -> str | None:
    return _form_for(request.headers.get(b"accept", b"").decode("latin-1"), version)


@lru_cache(maxsize=128)
def _form_for(accept: str, version: int) -> str | None:
    """The form of the best clause that names one; JSON where nothing is asked for."""
    forms = {
        "json": JSON,
        f"com.github.proto-openapi.spec.v{version}@v1.0+protobuf": PROTOBUF,
        f"com.github.proto-openapi.spec.v{version}.v1.0+protobuf": PROTOBUF,
    }
    for kind, subtype, _ in sorted(_clauses(accept or "*/*"), key=lambda clause: -clause[2]):
        if kind not in ("application", "*"):
            continue
        if subtype == "*":
            return JSON
        if subtype in forms:
            return forms[subtype]
    return None


def _clauses(accept: str) -> list[tuple[str, str, float]]:
    found = []
    for text in accept.split(","):
        media_type, *parameters = (part.strip() for part in text.split(";"))
        kind, slash, subtype = media_type.partition("/")
        if not slash and kind != "*":
            continue
        found.append((kind, subtype or "*", _quality(parameters)))
    return found


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0
