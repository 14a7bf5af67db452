from __future__ import annotations

import asyncio

import orjson
import pytest

from pilothouse.filters.timeout import allotted_seconds, is_long_running, with_timeout

from .handlers import Ask, answering, raising


@pytest.mark.parametrize(
    ("target", "long"),
    [
        ("/api/v1/pods", False),
        ("/api/v1/pods?watch=1", True),
        ("/api/v1/watch/pods", True),
        ("/api/v1/namespaces/a/pods/b/log", True),
        ("/api/v1/namespaces/a/pods/b/status", False),
        ("/healthz", False),
        ("/debug/pprof/heap", True),
    ],
)
def test_what_may_last(ask: Ask, target: str, long: bool) -> None:
    assert is_long_running(ask("GET", target)) is long


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("", 60.0), ("5s", 5.0), ("100ms", 0.1), ("2m", 60.0), ("0s", 60.0), ("-5s", 60.0), ("0", 60.0)],
)
def test_allotted_time(asked: str, seconds: float) -> None:
    assert allotted_seconds(asked, 60.0) == pytest.approx(seconds)


async def test_deadlines(ask: Ask) -> None:
    now = asyncio.get_running_loop().time()
    filter_ = with_timeout(answering(), 60.0)
    plain, asked, watch = ask(), ask("GET", "/api/v1/pods?timeout=1s"), ask("GET", "/api/v1/pods?watch=1&timeout=1s")
    watch.deadline = None
    for request in (plain, asked, watch):
        assert (await filter_(request)).status == 200
    assert plain.deadline is not None and plain.deadline - now > 59
    assert asked.deadline is not None and asked.deadline - now < 10
    assert watch.deadline is None
    refused = await filter_(ask("GET", "/api/v1/pods?timeout=soon"))
    assert refused.status == 400
    message = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert orjson.loads(refused.body)["message"] == message


async def test_a_single_write_has_less_time_than_deleting_a_collection(ask: Ask) -> None:
    now = asyncio.get_running_loop().time()
    filter_ = with_timeout(answering(), 60.0)
    one, all_ = ask("DELETE", "/api/v1/namespaces/n/pods/p"), ask("DELETE", "/api/v1/namespaces/n/pods")
    for request in (one, all_):
        await filter_(request)
    assert one.deadline is not None and one.deadline - now < 50
    assert all_.deadline is not None and all_.deadline - now > 59


async def test_a_deadline_that_has_passed(ask: Ask) -> None:
    request = ask()
    request.timed_out = True
    response = await with_timeout(raising(asyncio.CancelledError()), 60.0)(request)
    assert response.status == 504
    assert orjson.loads(response.body)["reason"] == "Timeout"
    other = ask()
    other.timed_out = False
    with pytest.raises(asyncio.CancelledError):
        await with_timeout(raising(asyncio.CancelledError()), 60.0)(other)
