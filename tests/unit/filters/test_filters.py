"""Each filter alone, around a handler that does as it is told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.answer_headers import with_answer_headers, with_cache_control
from pilothouse.filters.cors import with_cors
from pilothouse.filters.instrumentation import with_instrumentation
from pilothouse.filters.recovery import with_recovery
from pilothouse.filters.request_info import with_request_info
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.filters.strict_transport import with_strict_transport
from pilothouse.filters.timeout import allotted_seconds, is_long_running, with_timeout
from pilothouse.filters.types import Handler
from pilothouse.filters.warnings import quote_warning, warning_headers
from pilothouse.machinery import errors
from pilothouse.machinery.metrics import render
from pilothouse.net.messages import ClientDisconnected, Response
from pilothouse.storage.backends.contract import Unavailable

Ask = Callable[..., APIRequest]


def answering(status: int = 200, **more: Any) -> Handler:
    async def handle(request: APIRequest) -> Response:
        return Response(status, **more)

    return handle


def raising(error: BaseException) -> Handler:
    async def handle(request: APIRequest) -> Response:
        raise error

    return handle


# Recovery


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


# Audit id


async def test_audit_ids(ask: Ask) -> None:
    filter_ = with_answer_headers(answering())
    request = ask()
    response = await filter_(request)
    assert dict(response.headers)[b"audit-id"].decode() == request.audit_id
    given = await filter_(ask(audit_id="mine"))
    assert dict(given.headers)[b"audit-id"] == b"mine"
    long = await filter_(ask(audit_id="x" * 100))
    assert len(dict(long.headers)[b"audit-id"]) == 64


# Headers


async def test_cache_control(ask: Ask) -> None:
    plain = await with_answer_headers(with_cache_control(answering()))(ask())
    assert (b"cache-control", b"no-cache, private") in plain.headers
    own = await with_answer_headers(with_cache_control(answering(headers=[(b"cache-control", b"public")])))(ask())
    assert [value for name, value in own.headers if name == b"cache-control"] == [b"public"]
    before = await with_answer_headers(answering())(ask())
    assert b"cache-control" not in dict(before.headers)


async def test_nothing_is_added_for_who_takes_the_connection_over(ask: Ask) -> None:
    switching = answering(101, upgrade=lambda transport, leftover: None)
    response = await with_answer_headers(with_cache_control(switching))(ask())
    assert response.headers == []


async def test_strict_transport(ask: Ask) -> None:
    response = await with_strict_transport(answering(), ["max-age=1", "preload"])(ask())
    assert response.headers == [(b"strict-transport-security", b"max-age=1; preload")]


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


# Warnings


async def test_warnings(ask: Ask) -> None:
    request = ask()
    for text in ("one", "two", "one"):
        request.warn(text)
    response = await with_answer_headers(answering(422))(request)
    assert response.headers[:-1] == [(b"warning", b'299 - "one"'), (b"warning", b'299 - "two"')]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("plain", b'299 - "plain"'),
        ('say "hi" \\', b'299 - "say \\"hi\\" \\\\"'),
        ("é", '299 - "é"'.encode()),
    ],
)
def test_quoting_warnings(text: str, header: bytes) -> None:
    assert quote_warning(text) == header


def test_long_warnings_are_cut_and_then_dropped() -> None:
    (one,) = warning_headers(["x" * 4000])
    assert len(one[1]) > 4000
    cut = warning_headers([f"{n}" + "x" * 4000 for n in range(2)])
    assert [len(value) for _, value in cut] == [264, 264]
    assert len(warning_headers([f"{n}" + "x" * 500 for n in range(100)])) == 16
    assert len(warning_headers([f"{n:03}" + "x" * 17 for n in range(1000)])) == 205
    assert [len(value) for _, value in warning_headers(["ä" * 4000, "b"])] == [8008, 9]


def test_warnings_with_control_characters_are_not_sent() -> None:
    assert warning_headers(["a\r\nSet-Cookie: x", "b\x85", "", "c"]) == [(b"warning", b'299 - "c"')]


# Request info


async def test_a_request_line_is_read_once(ask: Ask) -> None:
    first, again = ask("GET", "/api/v1/pods"), ask("GET", "/api/v1/pods")
    again.line = first.line
    for request in (first, again):
        await with_request_info(answering())(request)
    assert again.info is first.info
    assert again.info.resource == "pods"


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


# Time-outs


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


# Metrics


def samples(metrics: RequestMetrics) -> dict[tuple[str, str, str, str], float]:
    found = {}
    for line in render(metrics.instruments()).decode().splitlines():
        name, _, rest = line.partition("{")
        labels = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        if "verb" in labels and "le" not in labels:
            found[name, labels["verb"], labels["resource"], labels.get("code", "")] = float(line.rpartition(" ")[2])
    return found


async def test_requests_are_counted(ask: Ask) -> None:
    metrics = RequestMetrics()
    for method, target, code in (("GET", "/api/v1/pods", 200), ("GET", "/api/v1/pods", 200), ("POST", "/x", 404)):
        await with_instrumentation(answering(code), metrics)(ask(method, target))
    found = samples(metrics)
    assert found["apiserver_request_total", "LIST", "pods", "200"] == 2
    assert found["apiserver_request_total", "POST", "", "404"] == 1
    assert found["apiserver_request_duration_seconds_count", "LIST", "pods", ""] == 2


async def test_writes_tell_apply_dry_run_and_the_size_of_their_bodies(ask: Ask) -> None:
    metrics = RequestMetrics()
    filtered = with_instrumentation(answering(200), metrics)
    path = "/api/v1/namespaces/a/pods/x"
    await filtered(ask("PATCH", f"{path}?dryRun=All", b"{}", content_type="application/apply-patch+yaml"))
    await filtered(ask("PUT", f"{path}?dryRun=Some", b"{}"))
    old = ask("GET", "/api/v1/componentstatuses/x")
    old.removed_release = ""
    await filtered(old)
    page = render(metrics.instruments()).decode()
    assert 'apiserver_request_total{verb="APPLY",dry_run="All",group="",version="v1",resource="pods"' in page
    assert 'apiserver_request_total{verb="PUT",dry_run="invalid",group=""' in page
    assert 'apiserver_request_body_size_bytes_count{resource="pods",verb="patch",group=""} 1' in page
    assert 'apiserver_requested_deprecated_apis{group="",version="v1",resource="componentstatuses"' in page


async def test_paths_that_lead_nowhere_are_counted_together(ask: Ask) -> None:
    metrics = RequestMetrics()
    for number in range(50):
        await with_instrumentation(answering(404), metrics)(ask("GET", f"/apis/g{number}/v1/r{number}/x"))
    counted = [name for name, *_ in samples(metrics) if name == "apiserver_request_total"]
    assert len(counted) == len(metrics._known) == 1


async def test_failures_are_counted(ask: Ask) -> None:
    metrics = RequestMetrics()
    with pytest.raises(ValueError, match="x"):
        await with_instrumentation(raising(ValueError("x")), metrics)(ask("PUT", "/api/v1/nodes/n"))
    assert samples(metrics)["apiserver_request_total", "PUT", "nodes", "500"] == 1
