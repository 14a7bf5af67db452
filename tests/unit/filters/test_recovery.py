from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.recovery import with_recovery
from pilothouse.machinery import errors
from pilothouse.net.messages import ClientDisconnected, Response
from pilothouse.storage.backends.contract import Unavailable

from .handlers import Ask, raising


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.bad_request("x"), 400, "x"),
        (Unavailable("disk full"), 500, "disk full"),
        (KeyError("secret"), 500, "Internal error occurred: this request caused apiserver to panic."),
        (RecursionError(), 400, "exceeded max depth"),
    ],
)
async def test_recovery(ask: Ask, caplog: pytest.LogCaptureFixture, error: Exception, code: int, message: str) -> None:
    response = await with_recovery(raising(error))(ask())
    assert response.status == code
    assert orjson.loads(response.body)["message"].startswith(message)
    assert b"secret" not in response.body
    assert ("Traceback" in caplog.text) is isinstance(error, KeyError)


async def test_recovery_from_a_value_that_cannot_be_encoded(ask: Ask) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]

    async def handle(request: APIRequest) -> Response:
        return Response(200, orjson.dumps(deep))

    assert (await with_recovery(handle)(ask())).status == 400


@pytest.mark.parametrize("error", [ClientDisconnected(), asyncio.CancelledError()])
async def test_what_recovery_leaves_alone(ask: Ask, error: BaseException) -> None:
    with pytest.raises(type(error)):
        await with_recovery(raising(error))(ask())
