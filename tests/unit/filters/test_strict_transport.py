from __future__ import annotations

from pilothouse.filters.strict_transport import with_strict_transport

from .handlers import Ask, answering


async def test_strict_transport(ask: Ask) -> None:
    response = await with_strict_transport(answering(), ["max-age=1", "preload"])(ask())
    assert response.headers == [(b"strict-transport-security", b"max-age=1; preload")]
