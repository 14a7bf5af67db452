"""How the server leaves: what is served until when, and that nobody who was accepted goes unanswered."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from pilothouse.testing.waiting import until

PATIENCE_SECONDS = 120.0
MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
WATCHES = 200
Launch = Callable[..., Any]
Connect = Callable[[Any], HTTPSConnection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connections that are closed at the end of the test."""
    opened: list[HTTPSConnection] = []
    contexts: dict[int, ssl.SSLContext] = {}

    def open_connection(server: Any) -> HTTPSConnection:
        if server.port not in contexts:
            contexts[server.port] = server.tls()
        context = contexts[server.port]
        opened.append(HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=context))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


def refuses_connections(server: Any) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


def begin_post(connection: HTTPSConnection, name: str) -> Callable[[], HTTPResponse]:
    """Send a request but for the end of its body; what is returned sends that and gives the answer."""
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()
    connection.putrequest("POST", MAPS)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:10])

    def finish() -> HTTPResponse:
        connection.send(body[10:])
        return connection.getresponse()

    return finish


def open_watch(connection: HTTPSConnection) -> HTTPResponse:
    connection.request("GET", f"{MAPS}?watch=1")
    answer = connection.getresponse()
    assert answer.status == 200
    return answer


def in_flight(server: Any) -> int:
    page = server.call("GET", "/metrics")[2].decode()
    name = 'apiserver_current_inflight_requests{request_kind="mutating"} '
    return int(float(page.partition(name)[2].partition("\n")[0]))


def has_aggregated_roles(server: Any) -> bool:
    """Whether the server is done with the writes of its own start, which count as in flight too."""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
    return all(server.call("GET", roles + name)[2].get("rules") for name in ("admin", "edit", "view"))


def test_during_the_delay_all_is_served_but_it_is_not_ready(launch: Launch, tmp_path: Path) -> None:
    server = launch(tmp_path / "data", "--shutdown-delay-duration=2s")
    held = sum(lease["metadata"]["name"].startswith("apiserver-") for lease in server.call("GET", LEASES)[2]["items"])
    assert held == 1
    server.process.send_signal(signal.SIGTERM)
    until(lambda: server.call("GET", "/readyz")[0] == 500)
    assert b"[-]shutdown failed" in server.call("GET", "/readyz?verbose")[2]
    assert server.call("GET", "/livez")[0] == 200
    status, _, made = server.call("POST", MAPS, {"metadata": {"name": "late"}})
    assert (status, made["metadata"]["name"]) == (201, "late")
    until(lambda: not _held(server))
    assert server.process.wait(PATIENCE_SECONDS) == 0
    assert refuses_connections(server)


def _held(server: Any) -> bool:
    items = server.call("GET", LEASES)[2]["items"]
    return any(lease["metadata"]["name"].startswith("apiserver-") for lease in items)


def test_new_requests_are_told_to_come_back_while_others_are_answered(
    launch: Launch, connect: Connect, tmp_path: Path
) -> None:
    server = launch(tmp_path / "data", "--shutdown-send-retry-after")
    until(lambda: has_aggregated_roles(server))
    # Several, because the server's own writes count as well, one or two at a time.
    finishing = [begin_post(connect(server), f"slow-{number}") for number in range(5)]
    until(lambda: in_flight(server) >= 5)
    kept = connect(server)
    kept.request("GET", "/version")
    kept.getresponse().read()
    server.process.send_signal(signal.SIGTERM)
    until(lambda: server.call("GET", MAPS)[0] == 429)
    status, headers, body = server.call("GET", MAPS)
    assert (status, body) == (429, b"The apiserver is shutting down, please try again later.\n")
    assert (headers["retry-after"], headers["connection"]) == ("5", "close")
    kept.request("GET", "/version")
    assert kept.getresponse().status == 429
    assert server.call("GET", "/livez")[0] == 200
    assert server.call("GET", "/metrics")[0] == 200
    for finish in finishing:
        answer = finish()
        assert answer.status == 201
        answer.read()
    assert server.process.wait(PATIENCE_SECONDS) == 0
    again = launch(tmp_path / "data")
    assert again.call("GET", f"{MAPS}/slow-0")[0] == 200


def test_many_watches_and_kubectl_end_properly_nothing_is_lost(
    launch: Launch, connect: Connect, tmp_path: Path, kubectl: Any
) -> None:
    server = launch(tmp_path / "data", "--shutdown-watch-termination-grace-period=1s")
    assert server.call("POST", MAPS, {"metadata": {"name": "first"}})[0] == 201
    watches = [open_watch(connect(server)) for _ in range(WATCHES)]
    following = subprocess.Popen(
        [kubectl.path, "--kubeconfig", str(server.kubeconfig), "get", "configmaps", "--watch", "-o", "name"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "configmap/first\n"
    slow = [begin_post(connect(server), f"slow-{number}") for number in range(5)]
    until(lambda: in_flight(server) == 5)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: refuses_connections(server))
    answers = [finish() for finish in slow]
    assert [answer.status for answer in answers] == [201] * 5
    for answer in answers:
        answer.read()
    for answer in watches:
        shown = [
            json.loads(line)["object"]["metadata"]["name"] for line in answer
        ]  # raises if the stream is broken off
        assert set(shown) <= {"first", *(f"slow-{number}" for number in range(5))}
    _, errors = following.communicate(timeout=PATIENCE_SECONDS)
    assert (following.returncode, errors) == (0, "")
    assert server.process.wait(PATIENCE_SECONDS) == 0
    again = launch(tmp_path / "data")
    assert [again.call("GET", f"{MAPS}/slow-{number}")[0] for number in range(5)] == [200] * 5
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log
