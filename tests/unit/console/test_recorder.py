"""Who looks sees every request and its steps; while nobody looks, nothing is done for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from pilothouse.admission.chain import AdmissionChain
from pilothouse.authn.loopback import LoopbackConnection
from pilothouse.console.recorder import MOST_RECORDS, MOST_VIEWERS, Recorder, Viewer
from pilothouse.console.traces import CURRENT, Trace, observe_step
from pilothouse.controllers.runtime.transport import make_request
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.answer_headers import with_answer_headers
from pilothouse.filters.chain import Filter
from pilothouse.filters.request_info import with_request_info
from pilothouse.filters.types import Handler
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery.spans import Span
from pilothouse.machinery.user import User
from pilothouse.net.messages import Response
from pilothouse.server.generic import GenericAPIServer

FILTERS: list[tuple[str, Filter]] = [("answer-headers", with_answer_headers), ("request-info", with_request_info)]


@pytest.fixture
async def asked() -> Callable[..., APIRequest]:
    def ask(method: str = "GET", path: str = "/version", query: dict[str, str] | None = None) -> APIRequest:
        headers = {b"authorization": b"Bearer very-secret", b"user-agent": b"kubectl/v1"}
        return make_request(LoopbackConnection(User("ann")), method, path, query or {}, headers, b"secret body")

    return ask


class Recording:
    """A recorder over a server with one path."""

    def __init__(self, handler: Handler | None = None, filters: list[tuple[str, Filter]] = FILTERS) -> None:
        self.front = GenericAPIServer("kube-aggregator", GenericAPIServer("kube-apiserver"))
        delegate = self.front.delegate
        assert delegate is not None
        delegate.routes.add("/version", handler or answer)
        self.admission = AdmissionChain(())
        self.recorder = Recorder(filters, self.front, self.admission, MaxInFlight(0, 0))


def taken(viewer: Viewer) -> tuple[list[Any], int]:
    """What a viewer has seen, decoded."""
    records, missed = viewer.take()
    return [orjson.loads(data) for _, data in records], missed


async def answer(request: APIRequest) -> Response:
    return Response(200, b"secret answer")


async def test_a_record_has_what_there_is_to_know_and_no_secrets(asked: Callable[..., APIRequest]) -> None:
    found = Recording()
    viewer = found.recorder.join()
    assert viewer is not None
    await found.recorder.handle(asked(query={"watch": "true", "command": "secret", "token": "secret"}))
    (record,), missed = taken(viewer)
    assert missed == 0
    assert record["path"] == "/version" and record["query"] == "watch=true&command=…&token=…"
    assert (record["code"], record["bytes"], record["server"]) == (200, 13, "kube-apiserver")
    assert [name for name, _ in record["filters"]] == ["answer-headers", "request-info", "handler"]
    assert all(seconds >= 0 for _, seconds in record["filters"])
    assert record["seconds"] >= sum(seconds for _, seconds in record["filters"]) * 0.99
    assert "secret" not in repr(record)


async def test_a_filter_that_answers_is_the_last_one(asked: Callable[..., APIRequest]) -> None:
    def refusing(following: Handler) -> Handler:
        return answer

    found = Recording(filters=[*FILTERS, ("authorization", refusing)])
    viewer = found.recorder.join()
    assert viewer is not None
    await found.recorder.handle(asked())
    (record,), _ = taken(viewer)
    assert record["filters"][-1][0] == "authorization" and record["server"] == ""


async def test_a_request_that_fails_is_told_too(asked: Callable[..., APIRequest]) -> None:
    async def failing(request: APIRequest) -> Response:
        raise RuntimeError

    found = Recording(failing)
    viewer = found.recorder.join()
    assert viewer is not None
    with pytest.raises(RuntimeError):
        await found.recorder.handle(asked())
    (record,), _ = taken(viewer)
    assert record["code"] == 0
    assert CURRENT.get() is None


async def test_steps_are_those_of_the_request(asked: Callable[..., APIRequest]) -> None:
    async def admit(attributes: Any) -> None:
        with Span("Call mutating webhook", {"webhook": "hook.example"}):
            pass

    async def refuse(attributes: Any) -> None:
        raise ValueError

    async def writing(request: APIRequest) -> Response:
        with Span("Create", lambda: {"url": "secret"}):
            await observe_step("Webhooks", "admit", admit)(None)
            with pytest.raises(ValueError):
                await observe_step("Quota", "validate", refuse)(None)
            with Span("Create sqlite", {"key": "/registry/secret"}) as span:
                span.step("Txn call succeeded")
        return Response(201)

    found = Recording(writing)
    viewer = found.recorder.join()
    assert viewer is not None
    await found.recorder.handle(asked())
    with Span("of somebody else"):
        pass
    (record,), _ = taken(viewer)
    assert [(depth, kind, name, detail, failed) for depth, kind, name, detail, _, _, failed in record["steps"]] == [
        (0, "", "Create", "", False),
        (1, "admission", "Webhooks", "admit", False),
        (2, "", "Call mutating webhook", "hook.example", False),
        (1, "admission", "Quota", "validate", True),
        (1, "storage", "Create sqlite", "", False),
    ]
    assert "secret" not in repr(record)


async def test_what_is_noted_after_the_end_or_without_end_is_dropped(asked: Callable[..., APIRequest]) -> None:
    request = asked()
    await with_answer_headers(with_request_info(answer))(request)
    trace = Trace(request)
    for _ in range(1000):
        trace.child("x", {})
    record = trace.record(200, 0, "", "")
    assert len(record["steps"]) == 100
    late = Trace(request)
    late.record(200, 0, "", "")
    late.child("x", {}).end(None)
    assert late.steps == []


def test_recording_is_on_while_somebody_looks() -> None:
    found = Recording()
    recorder = found.recorder
    first, second = recorder.join(), recorder.join()
    assert first is not None and second is not None
    assert found.admission._observe is not None
    recorder.leave(first)
    recorder.leave(first)
    assert recorder.viewers == [second] and found.admission._observe is not None
    recorder.leave(second)
    assert found.admission._observe is None


def test_there_is_a_bound_to_those_who_look() -> None:
    recorder = Recording().recorder
    viewers = [recorder.join() for _ in range(MOST_VIEWERS)]
    assert None not in viewers and recorder.join() is None


async def test_there_is_a_bound_to_what_a_viewer_keeps(asked: Callable[..., APIRequest]) -> None:
    recorder = Recording().recorder
    viewer = recorder.join()
    assert viewer is not None
    for _ in range(MOST_RECORDS + 3):
        await recorder.handle(asked())
    records, missed = taken(viewer)
    assert (len(records), missed) == (MOST_RECORDS, 3)
    assert taken(viewer) == ([], 0)
