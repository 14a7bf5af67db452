"""Configuration, classification, seats of levels, and what is shown of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from pilothouse.apis.gates import default_gates
from pilothouse.controlplane.bootstrap.static_objects import static_objects
from pilothouse.endpoints.request import APIRequest
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.dumps import dump_levels, dump_queues, dump_requests, level_rows, queue_rows, request_rows
from pilothouse.machinery.metrics import render
from pilothouse.machinery.user import User

Ask = Callable[..., APIRequest]
ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
NODE = User("system:node:n", groups=("system:nodes", "system:authenticated"))
ACCOUNT = User("system:serviceaccount:a:b", groups=("system:serviceaccounts", "system:authenticated"))
ANN = User("ann", groups=("system:authenticated",))


def make(seats: int = 600, clock: Callable[[], float] = time.monotonic) -> FlowController:
    controller = FlowController(seats, lambda group, resource: None, default_gates(), clock=clock)
    levels, schemas = static_objects("prioritylevelconfigurations"), static_objects("flowschemas")
    for number, each in enumerate((*levels, *schemas)):
        each["metadata"]["uid"] = f"uid-{number}"
    controller.configure(levels, schemas)
    return controller


@pytest.fixture
async def controller() -> FlowController:
    return make()


@pytest.mark.parametrize(
    ("user", "method", "target", "schema", "level"),
    [
        (ADMIN, "GET", "/api/v1/pods", "exempt", "exempt"),
        (NODE, "PUT", "/api/v1/nodes/n/status", "system-node-high", "node-high"),
        (NODE, "GET", "/api/v1/pods", "system-nodes", "system"),
        (ACCOUNT, "GET", "/api/v1/pods", "service-accounts", "workload-low"),
        (ANN, "GET", "/api/v1/pods", "global-default", "global-default"),
        (ANN, "GET", "/healthz", "probes", "exempt"),
        (User("nobody"), "GET", "/api/v1/pods", "catch-all", "catch-all"),
    ],
)
async def test_requests_find_their_level(
    ask: Ask, controller: FlowController, user: User, method: str, target: str, schema: str, level: str
) -> None:
    flow = controller.classify(user, ask(method, target).info)
    assert (flow.schema.name, flow.level.name) == (schema, level)
    assert controller.classify(user, ask(method, target).info) is flow


async def test_flows_are_told_apart_as_the_schema_says(ask: Ask, controller: FlowController) -> None:
    info = ask("GET", "/api/v1/namespaces/x/pods").info
    assert controller.classify(ANN, info).distinguisher == "ann"
    assert controller.classify(ADMIN, info).distinguisher == ""
    assert len(controller.classify(ANN, info).hand) == 6


async def test_seats_are_shared_by_shares(controller: FlowController) -> None:
    nominal = {name: level.nominal for name, level in controller.levels.items()}
    assert nominal == {
        "catch-all": 13, "exempt": 0, "global-default": 49, "leader-election": 25, "node-high": 98, "system": 74,
        "workload-high": 98, "workload-low": 245,
    }  # fmt: skip
    limits = {name: (level.lower, level.upper) for name, level in controller.levels.items()}
    assert limits["workload-low"] == (24, 845)
    assert controller.levels["global-default"].most_seats == 8


async def test_busy_levels_borrow_and_give_back(ask: Ask) -> None:
    now = 0.0
    controller = make(clock=lambda: now)
    level = controller.levels["global-default"]
    flow = controller.classify(ANN, ask("POST", "/x").info)
    tickets = [controller.start(flow, ask("POST", "/x")) for _ in range(150)]
    now += 10
    controller.adjust()
    assert level.current > 120
    assert level.queues.executing > 120
    assert sum(each.current for each in controller.levels.values()) <= 602
    assert all(each.lower <= each.current <= max(each.upper, each.lower) for each in controller.levels.values())
    for ticket in tickets:
        assert ticket is not None
        ticket.release()
    controller.adjust()
    for _ in range(100):  # a quarter of an hour
        now += 10
        controller.adjust()
    assert level.current < 120


async def test_without_objects_there_are_the_mandatory_ones(ask: Ask, controller: FlowController) -> None:
    controller.configure((), ())
    assert set(controller.levels) == {"exempt", "catch-all"}
    assert controller.classify(ANN, ask().info).level.name == "catch-all"
    assert controller.classify(ADMIN, ask().info).level.name == "exempt"


async def test_a_level_that_is_gone_stays_until_it_is_idle(ask: Ask, controller: FlowController) -> None:
    flow = controller.classify(ANN, ask().info)
    ticket = controller.start(flow, ask())
    assert ticket is not None
    controller.configure((), ())
    assert controller.levels["global-default"].quiescing
    assert " true," in dump_levels([level_rows(controller)])
    ticket.release()
    controller.adjust()
    assert "global-default" not in controller.levels


async def test_broken_objects_are_taken_for_missing(ask: Ask, controller: FlowController) -> None:
    def level(**spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": "x"}, "spec": spec}

    queuing = {"queues": 512, "handSize": 8, "queueLengthLimit": 1}
    for broken in (
        level(type="Limited"),
        level(type="Exempt", exempt={}),
        level(type="Limited", limited={"limitResponse": {"type": "Queue"}}),
        level(type="Limited", limited={"limitResponse": {"type": "Queue", "queuing": queuing}}),
    ):
        controller.configure([broken], ())
        assert "x" not in controller.levels


async def test_what_is_shown(ask: Ask, controller: FlowController) -> None:
    request = ask("GET", "/api/v1/namespaces/x/pods/p")
    request.user = ANN
    ticket = controller.start(controller.classify(ANN, request.info), request)
    assert ticket is not None
    lines = dump_levels([level_rows(controller)]).splitlines()
    assert lines[0].startswith("PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ")
    assert [line.partition(",")[0] for line in lines[1:]] == sorted(controller.levels)
    assert lines[3] == (
        "global-default,    0,            false,  false,       0,               1,                 1,                  "
        "0,                0,                0"
    )
    queues = dump_queues([queue_rows(controller)]).splitlines()
    assert "0.00300000ss,  0,               0,           0.00000000ss" in "".join(queues)
    (shown,) = dump_requests([request_rows(controller, details=True)], details=True).splitlines()[1:]
    cells = [cell.strip() for cell in shown.split(",")]
    assert cells[:2] == ["global-default", "global-default"]
    assert cells[3:5] == ["-1", "ann"]
    assert cells[10:] == ["ann", "get", "/api/v1/namespaces/x/pods/p", "x", "p", "v1", "pods", ""]
    ticket.release()
    page = render(controller.instruments()).decode()
    labels = 'priority_level="global-default",flow_schema="global-default"'
    assert f"apiserver_flowcontrol_dispatched_requests_total{{{labels}}} 1\n" in page
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"} 245\n' in page
    assert 'apiserver_flowcontrol_priority_level_seat_utilization_count{phase="executing",' in page
    assert 'apiserver_flowcontrol_read_vs_write_current_requests_count{phase="waiting",' in page
