"""The chain of servers."""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer
from pilothouse.server.route_handlers import json_route, only_get

Ask = Callable[..., APIRequest]


def named(name: str) -> Callable[[APIRequest], object]:
    async def serve(request: APIRequest) -> Response:
        return Response(200, name.encode())

    return serve


async def test_a_request_goes_down_the_chain(ask: Ask) -> None:
    last = GenericAPIServer("last")
    first = GenericAPIServer("first", last)
    first.routes.add("/a", named("first"))  # type: ignore[arg-type]
    last.routes.add("/a", named("last"))  # type: ignore[arg-type]
    last.routes.add("/b", named("last"))  # type: ignore[arg-type]
    assert (await first.handle(ask("GET", "/a"))).body == b"first"
    assert (await first.handle(ask("GET", "/b"))).body == b"last"
    nothing = await first.handle(ask("GET", "/c"))
    assert (nothing.status, nothing.body) == (404, b"404 page not found\n")
    last.fall_back_to(named("fallen"))  # type: ignore[arg-type]
    assert (await first.handle(ask("GET", "/c"))).body == b"fallen"
    assert [server.name for server in first.chain()] == ["first", "last"]
    assert first.paths() == ["/a", "/b"]
    assert first.hooks is last.hooks
    assert first.checks is last.checks


async def test_only_get(ask: Ask) -> None:
    route = only_get(json_route(lambda: {"a": 1}))
    assert (await route(ask("GET", "/x"))).body == b'{\n  "a": 1\n}'
    refused = await route(ask("POST", "/x"))
    assert refused.status == 405
