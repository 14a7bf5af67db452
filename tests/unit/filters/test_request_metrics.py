"""What is counted of requests."""

from __future__ import annotations

import re

import pytest

from pilothouse.filters.instrumentation import with_instrumentation
from pilothouse.filters.request_metrics import RequestMetrics
from pilothouse.machinery.metrics import render

from .handlers import Ask, answering, raising


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


@pytest.mark.parametrize(("taken", "size"), [(2, 30), (1, 10)])
async def test_an_answer_of_unknown_length_is_as_long_as_what_was_taken_of_it(ask: Ask, taken: int, size: int) -> None:
    metrics = RequestMetrics()
    answer = answering(200, parts=[b"x" * 10, b"y" * 20], length=None)
    response = await with_instrumentation(answer, metrics)(ask("GET", "/api/v1/pods"))
    assert not samples(metrics).get(("apiserver_response_sizes_count", "LIST", "pods", ""))
    parts = iter(response.parts or ())
    for _ in range(taken):
        next(parts)
    response.parts = None
    del parts
    found = samples(metrics)
    assert found["apiserver_response_sizes_count", "LIST", "pods", ""] == 1
    assert found["apiserver_response_sizes_sum", "LIST", "pods", ""] == size


async def test_what_an_endpoint_does_not_find_is_counted_as_its_own(ask: Ask) -> None:
    metrics = RequestMetrics()
    request = ask("GET", "/api/v1/namespaces/a/pods/x")
    request.info.fitting = "endpoint"
    await with_instrumentation(answering(404), metrics)(request)
    assert samples(metrics)["apiserver_request_total", "GET", "pods", "404"] == 1


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
