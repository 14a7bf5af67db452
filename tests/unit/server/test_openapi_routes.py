"""The OpenAPI routes: negotiation, hashes, ETags, methods."""

from __future__ import annotations

import gzip
import time
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from pilothouse.apis.resources import table
from pilothouse.endpoints.installed import InstalledVersion
from pilothouse.endpoints.output.compression import THRESHOLD
from pilothouse.endpoints.query import Query
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.net.messages import Response
from pilothouse.openapi.sources import PlainPaths
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.openapi_routes import _form_for, install_openapi

GV = GroupVersion("scheduling.k8s.io", "v1")
PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF_V3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
DOCUMENT = f"/openapi/v3/apis/{GV}"


@pytest.fixture
def server() -> GenericAPIServer:
    made = GenericAPIServer("test")
    made.install_version(InstalledVersion(table()[GV], {}))
    install_openapi(made)
    return made


async def call(server: GenericAPIServer, target: str, method: str = "GET", **headers: str) -> Response:
    path, _, query = target.partition("?")
    lower = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    request: Any = SimpleNamespace(path=path, query=query, method=method, headers=lower, options=Query(query))
    handler = server.routes.find(path)
    assert handler is not None
    return await handler(request)


def header(response: Response, name: bytes) -> bytes:
    return dict(response.headers).get(name, b"")


@pytest.mark.parametrize(
    ("accept", "version", "form"),
    [
        ("", 2, "json"),
        ("*/*", 3, "json"),
        ("application/*", 3, "json"),
        ("application/json", 2, "json"),
        (PROTOBUF_V2, 2, "protobuf"),
        (PROTOBUF_V2.replace("@", "."), 2, "protobuf"),
        (PROTOBUF_V2, 3, None),
        (f"application/json;q=0.5, {PROTOBUF_V3}", 3, "protobuf"),
        (f"{PROTOBUF_V3};q=bad, application/json;q=0.9", 3, "json"),
        (f"application/*, {PROTOBUF_V3};q=0.1", 3, "protobuf"),
        ("*/json", 3, "json"),
        ("text/html", 2, None),
        ("nonsense", 2, ""),
        ("application/", 2, ""),
        ("text/html, */*;q=0.1", 2, "json"),
    ],
)
def test_negotiation(accept: str, version: int, form: str | None) -> None:
    assert _form_for(accept, version) == form


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_index_answers_any_method_as_plain_text(server: GenericAPIServer, method: str) -> None:
    response = await call(server, "/openapi/v3", method)
    assert (response.status, response.content_type) == (200, b"text/plain; charset=utf-8")
    assert list(orjson.loads(response.body)["paths"]) == [
        ".well-known/openid-configuration", "api", "apis", "apis/scheduling.k8s.io", "apis/scheduling.k8s.io/v1",
        "openid/v1/jwks", "version",
    ]  # fmt: skip


async def test_index_that_changed_within_the_second_is_served_again() -> None:
    made = GenericAPIServer("test")
    openapi = install_openapi(made)
    first = await call(made, "/openapi/v3")
    known = header(first, b"last-modified").decode()
    openapi.set_document("more", PlainPaths([]))
    second = await call(made, "/openapi/v3", if_modified_since=known)
    assert second.status == 200
    assert "more" in orjson.loads(second.body)["paths"]
    later = formatdate(time.time() + 60, usegmt=True)
    assert (await call(made, "/openapi/v3", if_modified_since=later)).status == 304


async def test_unknown_document(server: GenericAPIServer) -> None:
    response = await call(server, "/openapi/v3/apis/nosuch/v1")
    assert (response.status, response.body, response.content_type) == (404, b"", b"")


async def test_address_of_the_index_may_be_cached(server: GenericAPIServer) -> None:
    index = orjson.loads((await call(server, "/openapi/v3")).body)
    response = await call(server, index["paths"][f"apis/{GV}"]["serverRelativeURL"])
    assert response.status == 200
    assert header(response, b"cache-control") == b"public, immutable"
    assert header(response, b"expires").endswith(b" UTC")
    assert header(response, b"vary") == b"Accept"
    document = orjson.loads(response.body)
    assert (document["openapi"], document["info"]) == ("3.0.0", {"title": "Kubernetes", "version": "1.37"})


async def test_old_hash_is_redirected(server: GenericAPIServer) -> None:
    response = await call(server, f"{DOCUMENT}?hash=OLD")
    assert (response.status, response.body) == (301, b"")
    location = header(response, b"location").decode()
    assert location.startswith(f"{DOCUMENT}?hash=")
    assert (await call(server, location)).status == 200


async def test_without_a_hash_nothing_is_said_of_caching(server: GenericAPIServer) -> None:
    response = await call(server, DOCUMENT)
    assert header(response, b"cache-control") == b""
    assert header(response, b"etag").startswith(b'"')


@pytest.mark.parametrize("target", ["/openapi/v2", DOCUMENT])
async def test_etag_saves_the_body(server: GenericAPIServer, target: str) -> None:
    etag = header(await call(server, target), b"etag").decode()
    response = await call(server, target, if_none_match=f'"x", {etag}')
    assert (response.status, response.body) == (304, b"")
    assert (await call(server, target, if_none_match='"x"')).status == 200


@pytest.mark.parametrize(
    ("target", "accept", "content_type"),
    [
        ("/openapi/v2", PROTOBUF_V2, b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        (DOCUMENT, PROTOBUF_V3, b"application/com.github.proto-openapi.spec.v3.v1.0+protobuf"),
        ("/openapi/v2", "application/json", b"application/json"),
    ],
)
async def test_content_types(server: GenericAPIServer, target: str, accept: str, content_type: bytes) -> None:
    response = await call(server, target, accept=accept)
    assert (response.status, response.content_type) == (200, content_type)


@pytest.mark.parametrize("target", ["/openapi/v2", DOCUMENT])
async def test_other_forms_are_refused(server: GenericAPIServer, target: str) -> None:
    response = await call(server, target, accept="text/html")
    assert (response.status, response.body) == (406, b"")


async def test_what_cannot_be_read_is_refused_or_answered_with_nothing(server: GenericAPIServer) -> None:
    refused = await call(server, "/openapi/v2", accept="nonsense")
    nothing = await call(server, DOCUMENT, accept="nonsense")
    assert (refused.status, nothing.status, nothing.body, nothing.headers) == (406, 200, b"", [])


async def test_the_old_document_is_compressed(server: GenericAPIServer) -> None:
    plain = await call(server, "/openapi/v2")
    assert [value for name, value in plain.headers if name == b"vary"] == [b"Accept", b"Accept-Encoding"]
    zipped = await call(server, "/openapi/v2", accept_encoding="gzip")
    large = len(plain.body) >= THRESHOLD
    assert (header(zipped, b"content-encoding") == b"gzip") is large
    if large:
        assert gzip.decompress(zipped.body) == plain.body
