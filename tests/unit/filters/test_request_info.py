from __future__ import annotations

import asyncio

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.request_info import with_request_info
from pilothouse.net.messages import Response

from .handlers import Ask, answering


async def test_a_request_line_is_read_once(ask: Ask) -> None:
    first, again = ask("GET", "/api/v1/pods"), ask("GET", "/api/v1/pods")
    again.line = first.line
    for request in (first, again):
        await with_request_info(answering())(request)
    assert again.info is first.info
    assert again.info.resource == "pods"
    assert again.options is first.options


async def test_a_read_has_the_store_asked_ahead_where_one_was_served_before(ask: Ask) -> None:
    asked: list[tuple[str, str]] = []

    def foresee(group: str, resource: str) -> asyncio.Future[int]:
        asked.append((group, resource))
        return asyncio.get_running_loop().create_future()

    filter_ = with_request_info(answering(), foresee)

    async def send(method: str, target: str, *, reads: bool) -> APIRequest:
        first, request = ask(method, target), ask(method, target)
        await filter_(first)
        request.line, request.connection.reads = first.line, reads
        await filter_(request)
        return request

    one = "/apis/apps/v1/namespaces/a/deployments/b"
    assert (await send("GET", one, reads=False)).foreseen is None
    assert (await send("GET", one, reads=True)).foreseen is not None
    assert asked == [("apps", "deployments")]
    for method, target in (
        ("GET", f"{one}?resourceVersion=0"),
        ("GET", "/apis/apps/v1/namespaces/a/deployments"),
        ("GET", "/healthz"),
        ("DELETE", one),
    ):
        assert (await send(method, target, reads=True)).foreseen is None
    assert len(asked) == 1


async def test_request_info(ask: Ask) -> None:
    seen: list[str] = []

    async def handle(request: APIRequest) -> Response:
        seen.append(request.info.resource)
        return Response()

    await with_request_info(handle)(ask("GET", "/api/v1/pods"))
    request = ask()
    request.path, request.target = "/api/v1/watch", b"/api/v1/watch?a=<b>"
    response = await with_request_info(handle)(request)
    assert (response.status, seen) == (500, ["pods"])
    assert response.body == (
        b'Internal Server Error: "/api/v1/watch?a=&lt;b&gt;": failed to create RequestInfo: '
        b"unable to determine kind and namespace from url, /api/v1/watch?a=&lt;b&gt;\n"
    )
