from __future__ import annotations

from typing import Any

import pytest

from pilothouse.simulation.scheduler.requests import assumed_requests, clash, host_ports, pod_requests


def container(cpu: str | None = None, **more: Any) -> dict[str, Any]:
    requests = {} if cpu is None else {"cpu": cpu}
    return {"name": "c", "resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [container("100m"), container("1")]}, 1100),
        ({"containers": [container("100m")], "initContainers": [container("2")]}, 2000),
        ({"containers": [container("100m")], "initContainers": [container("50m")]}, 100),
        ({"containers": [container("1")], "initContainers": [container("300m", restartPolicy="Always")]}, 1300),
        (
            # The sidecar began before the second init container and runs beside it.
            {
                "containers": [container("1")],
                "initContainers": [container("300m", restartPolicy="Always"), container("2")],
            },
            2300,
        ),
        (
            {
                "containers": [container("1")],
                "initContainers": [container("2"), container("300m", restartPolicy="Always")],
            },
            2000,
        ),
        ({"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [container("1")], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [container("0.0001")]}, 1),
    ],
)
def test_cpu_of_a_pod(spec: dict[str, Any], expected: int) -> None:
    assert pod_requests({"spec": spec})["cpu"] == expected


def test_nothing_asked_is_a_little_for_scores() -> None:
    pod = {"spec": {"containers": [container(), container("1")]}}
    assert assumed_requests(pod) == (1100, 2 * 200 * 1024 * 1024)
    assert pod_requests(pod) == {"cpu": 1000}


def test_host_ports_of_containers_and_sidecars() -> None:
    sidecar = container(restartPolicy="Always", ports=[{"hostPort": 81, "containerPort": 81, "protocol": "UDP"}])
    plain = container(ports=[{"hostPort": 82, "containerPort": 82}])
    main = container(ports=[{"hostPort": 80, "containerPort": 80, "hostIP": "10.0.0.1"}, {"containerPort": 9}])
    pod = {"spec": {"containers": [main], "initContainers": [sidecar, plain]}}
    assert host_ports(pod) == {("10.0.0.1", "TCP", 80), ("0.0.0.0", "UDP", 81)}


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "UDP", 80), False),
        (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81), False),
    ],
)
def test_ports_clash(wanted: Any, taken: Any, expected: bool) -> None:
    assert clash([wanted], [taken]) is expected
