from __future__ import annotations

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
        b"unable to determine kind and namespace from url, /api/v1/watch\n"
    )
