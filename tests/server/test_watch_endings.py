"""How watches end: those who do not read are left behind without harm to others, and at shutdown everybody is told."""

from __future__ import annotations

import json
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from websocket import ABNF, WebSocketConnectionClosedException, create_connection

BIG = "x" * 900_000
BIG_CHANGES = 10  # more than all buffers on the way hold together
SMALL_CHANGES = 1100  # more than the server keeps for a watcher that is behind
AHEAD = 100
PATIENCE_SECONDS = 120.0


class PlainWatch:
    """A watch over HTTP on a socket of its own, read by hand."""

    def __init__(self, server: Any, path: str, receive_buffer: int | None = None) -> None:
        raw = socket.socket()
        if receive_buffer is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(PATIENCE_SECONDS)
        raw.connect(("127.0.0.1", server.port))
        self.sock = server.tls().wrap_socket(raw, server_hostname="127.0.0.1")
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self._file = self.sock.makefile("rb")
        assert self._file.readline() == b"HTTP/1.1 200 OK\r\n"
        while self._file.readline() != b"\r\n":
            pass
        self._data = b""
        self.finished = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events until the end; ``finished`` tells whether the end was told properly."""
        try:
            while size := int(self._file.readline().strip() or b"0", 16):
                self._data += self._file.read(size)
                assert self._file.read(2) == b"\r\n"
                *lines, self._data = self._data.split(b"\n")
                yield from map(json.loads, lines)
            self.finished = self._file.readline() == b"\r\n" and self._data == b""
        except ConnectionError:
            return

    def close(self) -> None:
        self._file.close()
        self.sock.close()


class SocketWatch:
    """The same over a WebSocket."""

    def __init__(self, server: Any, path: str, receive_buffer: int | None = None) -> None:
        options = [] if receive_buffer is None else [(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)]
        pki = server.data / "pki"
        self._client = create_connection(
            f"wss://127.0.0.1:{server.port}{path}",
            sslopt={
                "ca_certs": str(pki / "ca.crt"),
                "certfile": str(pki / "admin.crt"),
                "keyfile": str(pki / "admin.key"),
            },
            sockopt=options,
            timeout=PATIENCE_SECONDS,
            skip_utf8_validation=True,  # byte by byte, in Python; whoever decodes the events does it too
        )
        self.code = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        try:
            while True:
                opcode, data = self._client.recv_data(control_frame=True)
                if opcode == ABNF.OPCODE_CLOSE:
                    (self.code,) = struct.unpack("!H", data[:2])
                    return
                yield json.loads(data)
        except (WebSocketConnectionClosedException, ConnectionError):
            return

    def close(self) -> None:
        self._client.shutdown()


Watch = Callable[..., Any]


@pytest.fixture
def watch() -> Iterator[Watch]:
    opened: list[Any] = []

    def start(kind: type, *arguments: Any) -> Any:
        opened.append(kind(*arguments))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def change(server: Any, path: str, readers: list[list[str]]) -> int:
    """Change an object so often that whoever does not read is left behind; the number of changes.

    Not faster than those who do read can: on a busy machine they might not be given a processor in time.
    """
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=server.tls())
    texts = [BIG + str(number) for number in range(BIG_CHANGES)] + [str(number) for number in range(SMALL_CHANGES)]
    for number, text in enumerate(texts):
        await_readers(readers, number - AHEAD)
        patch = json.dumps({"data": {"k": text}})
        connection.request("PATCH", path, patch, {"Content-Type": "application/merge-patch+json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()
    return len(texts)


def await_readers(readers: list[list[str]], events: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while min(map(len, readers)) < events:
        assert time.monotonic() < deadline, "who reads was left behind as well"
        time.sleep(0.001)


def test_those_who_do_not_read_are_left_behind_alone(server: Any, watch: Watch) -> None:
    maps = f"/api/v1/namespaces/{server.namespace('slow-watches')}/configmaps"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    version = server.call("POST", maps, made)[2]["metadata"]["resourceVersion"]
    path = f"{maps}?watch=1&resourceVersion={version}"
    slow = [watch(kind, server, path, 4096) for kind in (PlainWatch, SocketWatch)]
    quick = [watch(PlainWatch, server, path), watch(SocketWatch, server, path)]
    seen: list[list[str]] = [[], []]
    last = str(SMALL_CHANGES - 1)

    def follow(number: int) -> None:
        for event in quick[number]:
            seen[number].append(event["object"]["data"]["k"])
            if seen[number][-1] == last:
                return

    threads = [threading.Thread(target=follow, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    changes = change(server, f"{maps}/one", seen)
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert [len(each) for each in seen] == [changes, changes]
    for each in slow:
        late = [event["object"]["data"]["k"] for event in each]
        assert late == seen[0][: len(late)]
        assert last not in late


def test_at_shutdown_every_watch_is_told(launch: Callable[..., Any], tmp_path: Path, watch: Watch) -> None:
    server = launch(tmp_path / "data")
    server.namespace("ending")
    paths = ["/api/v1/namespaces?watch=1", "/api/v1/namespaces/ending/configmaps?watch=1", "/api/v1/pods?watch=1"]
    plain = [watch(PlainWatch, server, path) for path in paths * 3]
    sockets = [watch(SocketWatch, server, path) for path in paths * 3]
    idle = HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS, context=server.tls())
    idle.request("GET", "/version")
    idle.getresponse().read()
    server.process.send_signal(signal.SIGTERM)
    for each in [*plain, *sockets]:
        for _ in each:
            pass
    assert [each.finished for each in plain] == [True] * len(plain)
    assert [each.code for each in sockets] == [1001] * len(sockets)
    assert server.process.wait(PATIENCE_SECONDS) == 0  # though none of the clients has closed its end
    idle.close()
    assert "Traceback" not in server.log.read_text()
