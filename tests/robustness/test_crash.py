"""The whole server, as a process: killed in the middle of its work, interrupted once, interrupted twice."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from pilothouse.testing.waiting import until

MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE_SECONDS = 120.0
IN_FLIGHT = 'apiserver_current_inflight_requests{request_kind="mutating"}'
JSON = {"Content-Type": "application/json"}
Launch = Callable[..., Any]


def config_map(name: str) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()


def connect(server: Any) -> HTTPSConnection:
    return HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=server.tls())


def refuses_connections(server: Any) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


def events_of(answer: HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        yield json.loads(line)


class Load:
    """Clients that create objects as fast as they can until the server is gone."""

    def __init__(self, server: Any, run: int, clients: int = 4) -> None:
        self.acknowledged: dict[str, str] = {}
        self.attempted: set[str] = set()
        self._threads = [threading.Thread(target=self._create, args=(server, f"r{run}-{n}")) for n in range(clients)]
        for thread in self._threads:
            thread.start()

    def _create(self, server: Any, prefix: str) -> None:
        connection = connect(server)
        with contextlib.suppress(OSError, HTTPException), contextlib.closing(connection):
            for number in range(100_000):
                name = f"{prefix}-{number}"
                self.attempted.add(name)
                connection.request("POST", MAPS, config_map(name), JSON)
                answer = connection.getresponse()
                obj = json.loads(answer.read())
                assert answer.status == 201, obj
                self.acknowledged[name] = obj["metadata"]["resourceVersion"]

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def test_a_killed_server_has_lost_nothing_it_acknowledged(launch: Launch, tmp_path: Path) -> None:
    choice = random.Random(7)
    acknowledged: dict[str, str] = {}
    attempted: set[str] = set()
    server = launch(tmp_path / "data")
    began = server.call("GET", MAPS)[2]["metadata"]["resourceVersion"]
    newest = int(began)
    for run in range(3):
        load, wanted = Load(server, run), choice.randrange(30, 300)
        until(lambda load=load, wanted=wanted: len(load.acknowledged) >= wanted)  # type: ignore[misc]
        server.process.send_signal(signal.SIGKILL)
        assert server.process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
        load.wait()
        assert min(map(int, load.acknowledged.values())) > newest, "revisions never go back"
        acknowledged |= load.acknowledged
        attempted |= load.attempted
        server = launch(tmp_path / "data")
        listed = server.call("GET", MAPS)[2]
        newest = int(listed["metadata"]["resourceVersion"])
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        assert acknowledged.items() <= found.items()
        assert set(found) <= {*attempted, "kube-root-ca.crt"}
    check_watch(server, began, acknowledged)


def check_watch(server: Any, began: str, acknowledged: dict[str, str]) -> None:
    """A watch from before the first crash shows every acknowledged object once, in order."""
    connection = connect(server)
    connection.request("GET", f"{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={began}")
    events = [event for event in events_of(connection.getresponse()) if event["type"] == "ADDED"]
    connection.close()
    shown = [(e["object"]["metadata"]["name"], e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert acknowledged.items() <= dict(shown).items()
    assert len(dict(shown)) == len(shown)
    revisions = [int(revision) for _, revision in shown]
    assert revisions == sorted(revisions)


class SlowPost:
    """A request whose body stops half-way until it is told to go on."""

    def __init__(self, server: Any, name: str) -> None:
        body = config_map(name)
        self._rest = body[10:]
        self._connection = connect(server)
        # What was answered before this request shows that the connection has passed the handshake.
        self._connection.request("GET", "/version")
        self._connection.getresponse().read()
        self._connection.putrequest("POST", MAPS)
        for header, value in (*JSON.items(), ("Content-Length", str(len(body)))):
            self._connection.putheader(header, value)
        self._connection.endheaders(body[:10])

    def finish(self) -> HTTPResponse:
        self._connection.send(self._rest)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


def serving(server: Any) -> int:
    """How many requests the server is working on."""
    text = server.call("GET", "/metrics")[2].decode()
    line = next(line for line in text.splitlines() if line.startswith(IN_FLIGHT))
    return int(float(line.rpartition(" ")[2]))


def test_a_graceful_stop_ends_watches_and_answers_what_is_in_flight(launch: Launch, tmp_path: Path) -> None:
    server = launch(tmp_path / "data")
    watching = connect(server)
    watching.request("GET", f"{MAPS}?watch=1")
    watch = watching.getresponse()
    assert watch.status == 200
    idle = connect(server)
    idle.request("GET", "/version")
    idle.getresponse().read()
    slow = SlowPost(server, "late")
    until(lambda: serving(server) == 1)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: refuses_connections(server))
    assert [event["type"] for event in events_of(watch)] == [], "the stream ends, and ends properly"
    watching.close()
    assert idle.sock is not None
    assert idle.sock.recv(1) == b"", "a connection that waits for nothing is closed"
    idle.close()
    assert server.process.poll() is None
    answer = slow.finish()
    obj = json.loads(answer.read())
    assert (answer.status, obj["metadata"]["name"]) == (201, "late")
    assert answer.getheader("Connection") == "close"
    slow.close()
    assert server.process.wait(PATIENCE_SECONDS) == 0
    again = launch(tmp_path / "data")
    assert again.call("GET", f"{MAPS}/late")[2] == obj
    log = server.log.read_text()
    assert "Traceback" not in log
    assert "ERROR" not in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_interrupt_stops_at_once(launch: Launch, tmp_path: Path, number: signal.Signals) -> None:
    server = launch(tmp_path / "data")
    slow = SlowPost(server, "never")
    until(lambda: serving(server) == 1)
    server.process.send_signal(number)
    until(lambda: refuses_connections(server))
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.2)  # it waits for the request
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_SECONDS) == 1
    slow.close()
    again = launch(tmp_path / "data")
    assert again.call("GET", f"{MAPS}/never")[0] == 404


def test_a_store_that_is_none_is_refused_in_one_line(launch: Launch, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "store.db").write_bytes(b"this is no database " * 100)
    with pytest.raises(RuntimeError) as caught:
        launch(data)
    assert "store.db" in str(caught.value)
    assert "Traceback" not in str(caught.value)
