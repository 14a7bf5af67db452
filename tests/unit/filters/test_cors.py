from __future__ import annotations

import pytest

from pilothouse.filters.cors import with_cors

from .handlers import Ask, answering


@pytest.mark.parametrize(
    ("method", "origin", "status", "allowed"),
    [
        ("GET", "https://a.example", 200, True),
        ("GET", "https://A.EXAMPLE", 200, False),
        ("GET", "https://b.example", 200, False),
        ("GET", "", 200, False),
        ("OPTIONS", "https://a.example", 204, True),
        ("OPTIONS", "https://b.example", 200, False),
    ],
)
async def test_cors(ask: Ask, method: str, origin: str, status: int, allowed: bool) -> None:
    request = ask(method, "/x", origin=origin) if origin else ask(method, "/x")
    response = await with_cors(answering(), ["//a\\.example$"])(request)
    assert response.status == status
    headers = dict(response.headers)
    assert (b"access-control-allow-origin" in headers) is allowed
    if allowed:
        assert headers[b"access-control-allow-origin"] == origin.encode()
    if status == 204:
        assert response.content_type == b""
