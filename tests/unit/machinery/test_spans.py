"""Spans: what the log says of slow ones, and what is handed to whoever collects traces."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from pilothouse.machinery import spans
from pilothouse.machinery.spans import Span, current, propagation_headers, step


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(spans.time, "perf_counter", clock.perf_counter)
    return clock


class Exported:
    """Writes down what it is told."""

    def __init__(self, name: str, told: list[Any]) -> None:
        self.name, self.told = name, told
        told.append(("begin", name))

    def child(self, name: str, fields: Any) -> Exported:
        return Exported(f"{self.name}/{name}", self.told)

    def event(self, name: str, fields: Any) -> None:
        self.told.append((self.name, name, dict(fields)))

    def end(self, error: BaseException | None) -> None:
        self.told.append(("end", self.name, error and str(error)))

    def headers(self) -> dict[str, str]:
        return {"traceparent": self.name}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log, without numbers and times of day."""
    text = "\n".join(record.getMessage() for record in caplog.records)
    return re.sub(r"\(([0-9A-Za-z-]+ )?[0-9:.]{12}\)", "(T)", re.sub(r"Trace\[\d+\]", "Trace", text)).splitlines()


def test_a_slow_request_is_told_with_the_steps_that_took_long(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pilothouse")
    with Span("Create", lambda: {"audit-id": "x", "verb": "POST"}):
        clock.now += 0.01
        step("limitedReadBody succeeded", {"len": 12})
        clock.now += 0.2
        step("Conversion done")
        with Span("Create etcd3", {"key": "/a", "dry": False}):
            clock.now += 0.6
            step("Txn call succeeded")
        clock.now += 0.001
        step("About to write a response")
    *told, last = lines(caplog)
    assert told == [
        'Trace: "Create" audit-id:x,verb:POST (T) (total time: 811ms):',
        'Trace: ---"Conversion done" 200ms (T)',
        'Trace: ["Create etcd3" key:/a,dry:false 600ms (T)',
        'Trace:  ---"Txn call succeeded" 600ms (T)]',
    ]
    assert re.fullmatch(r"Trace: \[81\S+ms\] \[81\S+ms\] END", last)


def test_at_high_verbosity_all_steps_are_told(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pilothouse")
    with Span("List"):
        with Span("cacher.GetList"):
            step("Filtered items", {"count": 3})
        clock.now += 0.5
    assert [line for line in lines(caplog) if "Filtered" in line] == ['Trace:  ---"Filtered items" count:3 0ms (T)]']


def test_a_short_request_says_nothing_but_what_was_slow_within_it(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pilothouse")
    with Span("Get"):
        clock.now += 0.4
    assert not caplog.records
    with Span("List"), Span("Call conversion webhook", threshold=0.058):
        clock.now += 0.1
    assert lines(caplog)[0] == 'Trace: "Call conversion webhook" (T) (total time: 100ms):'


def test_what_cannot_be_told_harms_nobody(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pilothouse")

    def fields() -> dict[str, str]:
        raise ValueError("no")

    with Span("Create", fields):
        clock.now += 1
    assert lines(caplog) == ["a slow Create cannot be described"]


def test_outside_of_spans_steps_are_nothing() -> None:
    step("nobody listens")
    assert current() is None
    assert propagation_headers() == {}


def test_what_collects_traces_is_told_of_all_of_it() -> None:
    told: list[Any] = []
    with Span("POST", exported=Exported("POST", told)):
        with pytest.raises(ValueError, match="no"), Span("Create"):
            assert propagation_headers() == {"traceparent": "POST/Create"}
            step("stored", {"len": 1})
            raise ValueError("no")
        assert current() is not None
    assert told == [
        ("begin", "POST"),
        ("begin", "POST/Create"),
        ("POST/Create", "stored", {"len": 1}),
        ("end", "POST/Create", "no"),
        ("end", "POST", None),
    ]


async def test_work_that_outlives_a_request_is_no_part_of_it() -> None:
    told: list[Any] = []
    ended = asyncio.Event()

    async def work() -> None:
        await ended.wait()
        step("late")
        with Span("later"):
            assert propagation_headers() == {}

    with Span("POST", exported=Exported("POST", told)) as request:
        working = asyncio.create_task(work())
    ended.set()
    await working
    assert told == [("begin", "POST"), ("end", "POST", None)]
    assert request._items == []


async def test_requests_side_by_side_do_not_see_each_other() -> None:
    async def work(name: str) -> dict[str, str]:
        with Span(name, exported=Exported(name, [])):
            await asyncio.sleep(0)
            return propagation_headers()

    assert await asyncio.gather(work("a"), work("b")) == [{"traceparent": "a"}, {"traceparent": "b"}]


def test_a_span_within_one_that_is_told_is_told_to_both() -> None:
    outer: list[Any] = []
    inner: list[Any] = []
    with Span("request", exported=Exported("outer", outer)), Span("handler", exported=Exported("inner", inner)):
        with Span("Create") as span:
            span.step("stored", {"key": 1})
        assert propagation_headers() == {"traceparent": "inner"}
    within = [("begin", "outer/handler/Create"), ("outer/handler/Create", "stored", {"key": 1})]
    assert outer[1:4] == [("begin", "outer/handler"), *within]
    assert inner[1:3] == [("begin", "inner/Create"), ("inner/Create", "stored", {"key": 1})]
    assert [told[1] for told in inner if told[0] == "end"] == ["inner/Create", "inner"]
    assert [told[1] for told in outer if told[0] == "end"] == ["outer/handler/Create", "outer/handler", "outer"]
