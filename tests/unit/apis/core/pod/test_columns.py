"""What ``kubectl get pods`` shows."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.core.pod.columns import COLUMNS, summarize
from pilothouse.apis.core.pod.strategy import PodStatusStrategy, PodStrategy
from pilothouse.apis.strategy import Strategy

Struct = dict[str, Any]


def status(name: str = "c", **more: Any) -> Struct:
    return {"name": name, "restartCount": 0, **more}


ENDED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
FAILED = {"terminated": {"exitCode": 3}}


@pytest.mark.parametrize(
    ("spec", "reported", "wanted"),
    [
        ({}, {"phase": "Pending"}, ("0/1", "Pending", "0")),
        ({}, {"phase": "Failed", "reason": "Evicted"}, ("0/1", "Evicted", "0")),
        (
            {},
            {"phase": "Running", "containerStatuses": [status(ready=True, state={"running": {}})]},
            ("1/1", "Running", "0"),
        ),
        (
            {},
            {
                "phase": "Running",
                "containerStatuses": [status(restartCount=4, state={"waiting": {"reason": "CrashLoopBackOff"}})],
            },
            ("0/1", "CrashLoopBackOff", "4"),
        ),
        ({}, {"phase": "Failed", "containerStatuses": [status(state=FAILED)]}, ("0/1", "ExitCode:3", "0")),
        (
            {},
            {"phase": "Failed", "containerStatuses": [status(state={"terminated": {"exitCode": 1, "signal": 9}})]},
            ("0/1", "Signal:9", "0"),
        ),
        ({}, {"phase": "Succeeded", "containerStatuses": [status(state=ENDED)]}, ("0/1", "Completed", "0")),
        (
            {"containers": [{}, {}]},
            {
                "phase": "Running",
                "containerStatuses": [status(state=ENDED), status("d", ready=True, state={"running": {}})],
            },
            ("1/2", "NotReady", "0"),
        ),
        (
            {"containers": [{}, {}]},
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [status(state=ENDED), status("d", ready=True, state={"running": {}})],
            },
            ("1/2", "Running", "0"),
        ),
        (
            {"initContainers": [{"name": "i"}, {"name": "j"}]},
            {
                "phase": "Pending",
                "initContainerStatuses": [status("i", state=ENDED), status("j", state={"running": {}})],
            },
            ("0/1", "Init:1/2", "0"),
        ),
        (
            {"initContainers": [{"name": "i"}]},
            {"phase": "Pending", "initContainerStatuses": [status("i", restartCount=2, state=FAILED)]},
            ("0/1", "Init:ExitCode:3", "2"),
        ),
        (
            {"initContainers": [{"name": "s", "restartPolicy": "Always"}]},
            {
                "phase": "Running",
                "initContainerStatuses": [status("s", ready=True, started=True, restartCount=1, state={"running": {}})],
                "containerStatuses": [status(ready=True, restartCount=1, state={"running": {}})],
            },
            ("2/2", "Running", "2"),
        ),
        (
            {},
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            ("0/1", "SchedulingGated", "0"),
        ),
    ],
)
def test_summaries(spec: Struct, reported: Struct, wanted: tuple[str, str, str]) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{}], **spec}, "status": reported}
    assert tuple(summarize(pod)) == wanted


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
        ({"phase": "Failed"}, "Failed"),
    ],
)
def test_pods_on_their_way_out(reported: Struct, wanted: str) -> None:
    metadata = {"name": "p", "deletionTimestamp": "2024-01-01T00:00:00Z"}
    assert summarize({"metadata": metadata, "spec": {"containers": [{}]}, "status": reported}).status == wanted


def test_wide_columns() -> None:
    pod: Struct = {
        "metadata": {"name": "p"},
        "spec": {"readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
    }
    pod["status"] = {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}
    cells = {column.name: column.cell(pod) for column in COLUMNS if column.priority}
    assert cells == {"IP": "10.0.0.1", "Node": "<none>", "Nominated Node": "<none>", "Readiness Gates": "1/2"}


@pytest.mark.parametrize("strategy", [PodStrategy, PodStatusStrategy])
def test_pods_at_their_end_are_marked_however_they_are_shown(strategy: type[Strategy]) -> None:
    (condition,) = strategy().row_conditions({"status": {"phase": "Failed"}})
    assert (condition["type"], condition["reason"]) == ("Completed", "Failed")
    assert strategy().row_conditions({"status": {"phase": "Running"}}) == []
