"""Seats on the way of a request: who holds them for how long, and what those are told who get none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.apis.gates import default_gates
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.flow_control import with_flow_control, with_max_in_flight
from pilothouse.filters.types import Handler
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.user import User
from pilothouse.net.messages import Response
from pilothouse.net.request_body import RequestBody

Ask = Callable[..., APIRequest]
ANN = User("ann", groups=("system:authenticated",))


def level(name: str = "own", length: int = 1) -> dict[str, Any]:
    queuing = {"queues": 1, "handSize": 1, "queueLengthLimit": length}
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Queue", "queuing": queuing}}
    return {"metadata": {"name": name, "uid": f"{name}-level"}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str = "own") -> dict[str, Any]:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    rule = {"subjects": [{"kind": "User", "user": {"name": "ann"}}], "resourceRules": [everything]}
    spec = {"priorityLevelConfiguration": {"name": name}, "matchingPrecedence": 5, "rules": [rule]}
    return {"metadata": {"name": name, "uid": f"{name}-schema"}, "spec": spec}


@pytest.fixture
async def controller() -> FlowController:
    """One seat for ann, and room for one to wait."""
    controller = FlowController(1, lambda group, resource: None, default_gates())
    controller.configure([level()], [schema()])
    return controller


@pytest.fixture
def asked(ask: Ask) -> Ask:
    def make(*arguments: Any) -> APIRequest:
        request = ask(*arguments)
        request.user, request.deadline = ANN, None
        request.disconnected, request._on_disconnect, request.seat = False, None, None
        request._body = request.unseated = None
        return request

    return make


def used(controller: FlowController) -> int:
    return controller.levels["own"].queues.seats


def answering(make: Callable[[], Response]) -> Handler:
    async def handle(request: APIRequest) -> Response:
        return make()

    return handle


async def test_the_answer_names_schema_and_level(asked: Ask, controller: FlowController) -> None:
    response = await with_flow_control(answering(Response), controller, 60.0)(asked())
    assert response.headers == [
        (b"x-kubernetes-pf-flowschema-uid", b"own-schema"),
        (b"x-kubernetes-pf-prioritylevel-uid", b"own-level"),
    ]
    assert used(controller) == 0


async def test_one_is_served_one_waits_and_one_is_turned_away(asked: Ask, controller: FlowController) -> None:
    gate = asyncio.Event()

    async def handle(request: APIRequest) -> Response:
        await gate.wait()
        return Response()

    filtered = with_flow_control(handle, controller, 60.0)
    first, second = asyncio.ensure_future(filtered(asked())), asyncio.ensure_future(filtered(asked()))
    await asyncio.sleep(0)
    refused = await filtered(asked())
    assert (refused.status, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert dict(refused.headers)[b"retry-after"] == b"1"
    assert dict(refused.headers)[b"x-kubernetes-pf-prioritylevel-uid"] == b"own-level"
    gate.set()
    assert [(await each).status for each in (first, second)] == [200, 200]
    assert used(controller) == 0


async def test_a_read_has_a_seat_only_while_it_waits(asked: Ask, controller: FlowController) -> None:
    gate = asyncio.Event()

    async def handle(request: APIRequest) -> Response:
        seats.append(used(controller))
        await gate.wait()
        seats.append(used(controller))
        return Response()

    seats: list[int] = []
    reads = [("GET", f"/api/v1/namespaces/a/configmaps/{name}") for name in "abc"]
    filtered = with_flow_control(handle, controller, 60.0)
    first, second = (asyncio.ensure_future(filtered(asked(*each))) for each in reads[:2])
    await asyncio.sleep(0)
    assert (await filtered(asked(*reads[2]))).status == 429
    gate.set()
    answers = await first, await second, await filtered(asked(*reads[2]))
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert seats == [0, 1, 1, 1, 0, 0]
    assert controller.series["own", "own"].dispatched == 3
    assert used(controller) == 0


async def test_waiting_ends_after_a_quarter_of_the_time(asked: Ask, controller: FlowController) -> None:
    gate = asyncio.Event()

    async def handle(request: APIRequest) -> Response:
        await gate.wait()
        return Response()

    filtered = with_flow_control(handle, controller, 0.01)
    first = asyncio.ensure_future(filtered(asked()))
    await asyncio.sleep(0)
    assert (await filtered(asked())).status == 429
    assert controller.series["own", "own"].rejected == {"time-out": 1}
    gate.set()
    assert (await first).status == 200


@pytest.mark.parametrize("whole", [True, False])
async def test_a_large_body_keeps_its_seat_until_it_is_written(
    asked: Ask, controller: FlowController, whole: bool
) -> None:
    data = b"x" * 200_000

    def make() -> Response:
        return Response(200, data) if whole else Response(200, parts=[data[:100], data[100:]], length=len(data))

    response = await with_flow_control(answering(make), controller, 60.0)(asked())
    assert response.parts is not None
    assert response.length == len(data)
    assert used(controller) == 1
    assert b"".join(response.parts) == data
    assert used(controller) == 0


async def test_a_large_body_gives_its_seat_back_when_the_client_goes_or_time_is_up(
    asked: Ask, controller: FlowController
) -> None:
    filtered = with_flow_control(answering(lambda: Response(200, b"x" * 200_000)), controller, 60.0)
    request = asked()
    kept = await filtered(request)
    request.note_disconnect()
    assert used(controller) == 0
    request = asked()
    request.deadline = asyncio.get_running_loop().time()
    kept = await filtered(request)
    async with asyncio.timeout(120):
        while used(controller):
            await asyncio.sleep(0)
    assert kept.parts is not None
    assert (await filtered(asked("HEAD"))).length == 0
    assert used(controller) == 0


async def test_failures_give_seats_back(asked: Ask, controller: FlowController) -> None:
    async def fail(request: APIRequest) -> Response:
        raise ValueError

    for target in ("/api/v1/pods", "/api/v1/pods?watch=1"):
        with pytest.raises(ValueError):
            await with_flow_control(fail, controller, 60.0)(asked("GET", target))
    assert used(controller) == 0
    assert controller.watches.woken_by(asked("POST", "/api/v1/pods").info) == 0


async def test_a_watch_has_a_seat_until_it_has_begun_and_is_counted_until_it_ends(
    asked: Ask, controller: FlowController
) -> None:
    ended = asyncio.Event()

    async def stream(writer: Any) -> None:
        await ended.wait()

    filtered = with_flow_control(answering(lambda: Response(stream=stream)), controller, 60.0)
    response = await filtered(asked("GET", "/api/v1/pods?watch=1"))
    assert used(controller) == 0
    assert response.stream is not None
    write = asked("POST", "/api/v1/namespaces/a/pods").info
    assert controller.watches.woken_by(write) == 1
    running: Any = asyncio.ensure_future(response.stream(None))  # type: ignore[arg-type]
    ended.set()
    await running
    assert controller.watches.woken_by(write) == 0


async def test_a_verb_may_take_the_seat_over(asked: Ask, controller: FlowController) -> None:
    async def keep(request: APIRequest) -> Response:
        kept.append(request.seat)
        request.seat = None
        return Response(stream=lambda writer: asyncio.sleep(0))

    kept: list[Any] = []
    await with_flow_control(keep, controller, 60.0)(asked("GET", "/api/v1/pods?watch=1"))
    assert used(controller) == 1
    kept[0].release()
    kept[0].release()
    assert used(controller) == 0


async def test_streams_into_containers_pass_without_a_seat(asked: Ask, controller: FlowController) -> None:
    async def look(request: APIRequest) -> Response:
        assert used(controller) == 0
        return Response()

    response = await with_flow_control(look, controller, 60.0)(asked("POST", "/api/v1/namespaces/a/pods/p/exec"))
    assert response.headers == []


async def test_max_in_flight(asked: Ask) -> None:
    limits = MaxInFlight(1, 0)
    gate = asyncio.Event()

    async def handle(request: APIRequest) -> Response:
        await gate.wait()
        return Response()

    filtered = with_max_in_flight(handle, limits)
    first = asyncio.ensure_future(filtered(asked()))
    await asyncio.sleep(0)
    refused = await filtered(asked())
    assert (refused.status, refused.body) == (429, b"Too many requests, please try again later.\n")
    assert dict(refused.headers)[b"retry-after"] == b"1"
    privileged = asked()
    privileged.user = User("root", groups=("system:masters",))
    others = [asyncio.ensure_future(filtered(each)) for each in (privileged, asked("POST"))]
    gate.set()
    assert [(await each).status for each in (first, *others)] == [200, 200, 200]
    assert (await filtered(asked())).status == 200


async def test_who_waits_for_its_body_has_no_seat(asked: Ask, controller: FlowController) -> None:
    """Another is served meanwhile; once the body is here, the request needs a seat as at first."""
    handle = with_flow_control(reading, controller, 60)
    slow, quick = asked("POST", "/api/v1/namespaces/a/pods"), asked("POST", "/api/v1/namespaces/a/pods")
    body = slow._body = RequestBody(Deaf(), 4)
    waiting = asyncio.ensure_future(handle(slow))
    await asyncio.sleep(0)
    assert used(controller) == 0
    quick._body = RequestBody(Deaf(), 4)
    quick._body.feed(b"next", True)
    assert (await handle(quick)).body == b"next"
    body.feed(b"last", True)
    assert (await waiting).body == b"last"
    assert used(controller) == 0
    assert slow.unseated is None


async def test_a_body_that_comes_too_late_for_a_seat(asked: Ask, controller: FlowController) -> None:
    going_on = asyncio.Event()

    async def handler(request: APIRequest) -> Response:
        answer = await reading(request)
        await going_on.wait()
        return answer

    handle = with_flow_control(handler, controller, 60)
    late = asked("POST", "/api/v1/namespaces/a/pods")
    body = late._body = RequestBody(Deaf(), 4)
    waiting = asyncio.ensure_future(handle(late))
    await asyncio.sleep(0)
    others = []
    for _ in range(2):
        other = asked("POST", "/api/v1/namespaces/a/pods")
        others.append(asyncio.ensure_future(handle(other)))
        await asyncio.sleep(0)
    body.feed(b"last", True)
    with pytest.raises(StatusError) as refused:
        await waiting
    assert refused.value.code == 429
    going_on.set()
    await asyncio.gather(*others)
    assert used(controller) == 0


class Deaf:
    """Where a body comes from that the test feeds."""

    def continue_reading(self) -> None:
        """Nothing comes sooner for it."""


async def reading(request: APIRequest) -> Response:
    return Response(200, await APIRequest.body(request))
