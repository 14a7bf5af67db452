from typing import Any

from pilothouse.controllers.endpoints.members import TargetPorts


def pod(containers: list[list[dict[str, Any]]], sidecars: list[list[dict[str, Any]]] | None = None) -> dict[str, Any]:
    restarted = [{"restartPolicy": "Always", "ports": ports} for ports in sidecars or ()]
    first = [{"ports": [{"name": "http", "containerPort": 1}]}]
    return {"spec": {"containers": [{"ports": ports} for ports in containers], "initContainers": [*first, *restarted]}}


def port(target: Any = None, protocol: str | None = None) -> dict[str, Any]:
    return {
        "port": 80,
        **({"targetPort": target} if target is not None else {}),
        **({"protocol": protocol} if protocol else {}),
    }


def test_numbers_are_taken_as_they_are() -> None:
    assert TargetPorts({"spec": {"ports": [port(), port(8080)]}}).of(pod([])) == (80, 8080)
    assert TargetPorts({"spec": {}}).of(pod([])) == ()


def test_names_are_looked_for_with_their_protocol() -> None:
    """The first one counts; containers that only begin the pod have none to offer, those that stay have."""
    tcp, udp = {"name": "http", "containerPort": 8080}, {"name": "http", "containerPort": 53, "protocol": "UDP"}
    again, last = {"name": "http", "containerPort": 9090}, {"name": "last", "containerPort": 7, "protocol": "TCP"}
    targets = TargetPorts({"spec": {"ports": [port("http"), port("http", "UDP"), port("last"), port("none"), port(5)]}})
    assert targets.of(pod([[udp], [tcp, again]], [[last]])) == (8080, 53, 7, None, 5)
