"""``/openapi/v2`` and ``/openapi/v3``: the documents of everything a chain of servers serves.

The answers are those of Go's ``http.ServeContent`` (``content.py``), whatever the method. A version 3 document asked
for by its hash may be cached for ever; an old hash is redirected to the new one. The index has no content type of its
own: Go takes it for plain text.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Final

from pilothouse.endpoints.negotiation import read_clauses
from pilothouse.endpoints.output.compression import VARY_BY_ENCODING, compress, is_worth_compressing
from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response
from pilothouse.openapi.operations import MediaTypes
from pilothouse.openapi.plain_paths import plain_operations
from pilothouse.openapi.registry import JSON, PROTOBUF, Encoded, OpenApi
from pilothouse.openapi.sources import BuiltInVersion, PlainPaths
from pilothouse.server.content import Headers, serve_content
from pilothouse.server.generic import GenericAPIServer

_INDEX_TYPE: Final = b"text/plain; charset=utf-8"
_CONTENT_TYPES: Final = {
    (2, JSON): b"application/json",
    (3, JSON): b"application/json",
    (2, PROTOBUF): b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    (3, PROTOBUF): b"application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
}
_FORMS: Final = {
    version: {
        "json": JSON,
        f"com.github.proto-openapi.spec.v{version}@v1.0+protobuf": PROTOBUF,
        f"com.github.proto-openapi.spec.v{version}.v1.0+protobuf": PROTOBUF,
    }
    for version in (2, 3)
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
        if not form:
            return Response(406, b"", b"", [_VARY, VARY_BY_ENCODING])
        response = _serve(request, await openapi.swagger(form), _CONTENT_TYPES[2, form], [_VARY])
        if is_worth_compressing(request, response):
            return await compress(response)
        response.headers.append(VARY_BY_ENCODING)
        return response

    async def serve_index(request: APIRequest) -> Response:
        # In kube-apiserver, whoever asks twice within a second is told that nothing has changed. Here definitions are
        # served at once, so that much may have.
        index = openapi.index()
        return serve_content(request, index.body, _INDEX_TYPE, time.time(), [], made=index.modified)

    async def serve_document(request: APIRequest) -> Response:
        return await _serve_document(openapi, request)

    server.routes.add("/openapi/v2", serve_swagger)
    server.routes.add("/openapi/v3", serve_index)
    server.routes.add_prefix("/openapi/v3/", serve_document)


async def _serve_document(openapi: OpenApi, request: APIRequest) -> Response:
    name = request.path.removeprefix("/openapi/v3/")
    form = _negotiate(request, 3)
    if form == "":
        return Response(200, b"", b"")
    found = await openapi.document(name, form or JSON)
    if found is None:
        return Response(404, b"", b"")
    if form is None:
        return Response(406, b"", b"", [_VARY])
    content_type = _CONTENT_TYPES[3, form]
    asked = request.options.text("hash")
    if not asked:
        return _serve(request, found, content_type, [_VARY])
    if asked != found.etag:
        location = openapi.address(name).encode()
        return Response(301, b"", content_type, [_VARY, (b"etag", _quoted(found.etag)), (b"location", location)])
    expires = time.strftime("%a, %d %b %Y %H:%M:%S UTC", time.gmtime(time.time() + _YEAR)).encode()
    headers = [_VARY, (b"cache-control", b"public, immutable"), (b"expires", expires)]
    return _serve(request, found, content_type, headers)


def _quoted(etag: str) -> bytes:
    return b'"%b"' % etag.encode()


def _serve(request: APIRequest, found: Encoded, content_type: bytes, headers: Headers) -> Response:
    return serve_content(request, found.body, content_type, found.modified, headers, _quoted(found.etag))


def _negotiate(request: APIRequest, version: int) -> str | None:
    return _form_for(request.headers.get(b"accept", b"").decode("latin-1"), version)


@lru_cache(maxsize=128)
def _form_for(accept: str, version: int) -> str | None:
    """The form of the best clause that names one, nothing where no clause can be read, None where none is served."""
    clauses = read_clauses(accept or "*/*")
    for clause in clauses:
        for subtype, form in _FORMS[version].items():
            if clause.type in ("application", "*") and clause.subtype in (subtype, "*"):
                return form
    return None if clauses else ""
