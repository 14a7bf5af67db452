from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.retry_after import Draining, with_retry_after
from pilothouse.net.messages import Response

Ask = Callable[..., APIRequest]


async def test_it_waits_for_what_is_under_way_and_takes_no_more(ask: Ask) -> None:
    draining, gate = Draining(), asyncio.Event()

    async def handle(request: APIRequest) -> Response:
        await gate.wait()
        return Response()

    filtered = with_retry_after(handle, draining)
    first = asyncio.ensure_future(filtered(ask()))
    watch = asyncio.ensure_future(filtered(ask("GET", "/api/v1/pods?watch=1")))
    await asyncio.sleep(0)
    assert not await draining.drain(0.001)
    refused = await filtered(ask())
    assert (refused.status, refused.close) == (429, True)
    exempt = [filtered(ask("GET", "/readyz/x")), filtered(ask(user_agent="kube-apiserver/v1.37.0"))]
    gate.set()
    assert [(await each).status for each in (first, watch, *exempt)] == [200] * 4
    assert await draining.drain(0.001)
