"""Watches over WebSockets against a running server, byte by byte and with a client that others use."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websocket import ABNF, create_connection
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
BEARER = "base64url.bearer.authorization.k8s.io."
HANDSHAKE = {
    "Host": "127.0.0.1",
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
    "Origin": "http://localhost",
}


class Dialled:
    """One connection: the answer to the handshake, and the events after it."""

    def __init__(self, sock: ssl.SSLSocket, path: str, headers: dict[str, str]) -> None:
        self.sock = sock
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
        sock.sendall(f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode())
        data = b""
        while b"\r\n\r\n" not in data:
            received = sock.recv(1 << 16)
            assert received, data
            data += received
        head, self._rest = data.split(b"\r\n\r\n", 1)
        status, *fields = head.decode().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
        self._parser = Connection(ConnectionType.CLIENT)
        self._events: list[Event] = []

    def body(self) -> bytes:
        """The body of an answer that is no switch; the connection must end with it."""
        data = self._rest
        while received := self.sock.recv(1 << 16):
            data += received
        return data

    def send(self, event: Event) -> None:
        self.sock.sendall(bytes(self._parser.send(event)))

    def next(self) -> Event | None:
        """The next event with its message complete; None at the end of the connection."""
        text: Any = None
        while True:
            while not self._events:
                data, self._rest = self._rest or self.sock.recv(1 << 16), b""
                if not data:
                    return None
                self._parser.receive_data(data)
                self._events.extend(self._parser.events())
            event = self._events.pop(0)
            if not isinstance(event, TextMessage | BytesMessage):
                return event
            text = event.data if text is None else text + event.data
            if event.message_finished:
                return type(event)(data=text)

    def watch_event(self) -> dict[str, Any]:
        event = self.next()
        assert isinstance(event, TextMessage), event
        assert event.data.endswith("}\n")
        return dict(json.loads(event.data))

    def ends_with(self, code: int) -> None:
        assert self.next() == CloseConnection(code=code, reason="")
        assert self.next() is None


Dial = Callable[..., Dialled]


def connect_to(server: Any, path: str, certificate: bool = True, **changed: str) -> Dialled:
    context = server.tls() if certificate else ssl.create_default_context(cafile=str(server.data / "pki" / "ca.crt"))
    sock = context.wrap_socket(socket.create_connection(("127.0.0.1", server.port), 30), server_hostname="127.0.0.1")
    headers = HANDSHAKE | {name.replace("_", "-"): value for name, value in changed.items()}
    return Dialled(sock, path, headers)


@pytest.fixture
def dial(server: Any) -> Iterator[Dial]:
    dialled: list[Dialled] = []

    def connect(path: str, **options: Any) -> Dialled:
        dialled.append(connect_to(server, path, **options))
        return dialled[-1]

    yield connect
    for each in dialled:
        each.sock.close()


@pytest.fixture
def maps(server: Any, request: pytest.FixtureRequest) -> str:
    """The path of config maps in a namespace of the test's own."""
    name = "ws-" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[-50:].strip("-")
    return f"/api/v1/namespaces/{server.namespace(name)}/configmaps"


def create(server: Any, maps: str, name: str) -> dict[str, Any]:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "ü"}}
    status, _, body = server.call("POST", maps, made)
    assert status == 201, body
    return dict(body)


def test_one_event_a_message(server: Any, dial: Dial, maps: str) -> None:
    first = create(server, maps, "first")
    socket = dial(maps + "?watch=1")
    assert socket.status == 101
    assert socket.headers["upgrade"] == "websocket"
    assert socket.headers["connection"] == "Upgrade"
    assert socket.headers["sec-websocket-accept"] == ACCEPT
    assert not {"sec-websocket-protocol", "content-type", "transfer-encoding", "content-length"} & set(socket.headers)
    assert socket.watch_event() == {"type": "ADDED", "object": first}
    second = create(server, maps, "second")
    assert socket.watch_event() == {"type": "ADDED", "object": second}
    server.call("DELETE", f"{maps}/first")
    deleted = socket.watch_event()
    assert (deleted["type"], deleted["object"]["metadata"]["name"]) == ("DELETED", "first")


def test_many_events_are_as_many_messages(server: Any, dial: Dial, maps: str) -> None:
    names = [f"m{number:03}" for number in range(60)]
    for name in names:
        create(server, maps, name)
    socket = dial(maps + "?watch=1")
    assert [socket.watch_event()["object"]["metadata"]["name"] for _ in names] == names


def test_the_old_path_of_watches(server: Any, dial: Dial, maps: str) -> None:
    made = create(server, maps, "one")
    socket = dial(maps.replace("/api/v1/", "/api/v1/watch/") + "/one")
    assert socket.watch_event()["object"] == made


def test_a_streamed_list(server: Any, dial: Dial, maps: str) -> None:
    create(server, maps, "one")
    query = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    socket = dial(maps + query)
    assert socket.watch_event()["type"] == "ADDED"
    mark = socket.watch_event()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_tables(server: Any, dial: Dial, maps: str) -> None:
    create(server, maps, "one")
    socket = dial(maps + "?watch=1", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert socket.watch_event()["object"]["kind"] == "Table"


def test_protobuf_travels_in_binary_messages_without_a_length(server: Any, dial: Dial, maps: str) -> None:
    create(server, maps, "one")
    socket = dial(maps + "?watch=1", Accept="application/vnd.kubernetes.protobuf")
    event = socket.next()
    assert isinstance(event, BytesMessage)
    assert bytes(event.data).startswith(b"\n\x05ADDED\x12")
    assert b"k8s\x00" in event.data


def test_lists_of_metadata_have_nothing_to_say(dial: Dial, maps: str) -> None:
    dial(maps + "?watch=1", Accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").ends_with(1000)


def test_the_time_is_up(dial: Dial, maps: str) -> None:
    dial(maps + "?watch=1&timeoutSeconds=1").ends_with(1000)


def test_the_client_closes(dial: Dial, maps: str) -> None:
    socket = dial(maps + "?watch=1")
    socket.send(CloseConnection(code=1001, reason="leaving the page"))
    socket.ends_with(1000)


def test_what_the_client_says_is_ignored(server: Any, dial: Dial, maps: str) -> None:
    socket = dial(maps + "?watch=1")
    socket.send(TextMessage(data='{"type":"ADDED"}'))
    socket.send(BytesMessage(data=bytes(200_000)))
    socket.send(Ping(payload=b"there?"))
    assert socket.next() == Pong(payload=bytearray(b"there?"))
    made = create(server, maps, "one")
    assert socket.watch_event()["object"] == made


@pytest.mark.parametrize("protocol", ["base64.binary.k8s.io", "anything"])
def test_a_subprotocol_is_echoed(dial: Dial, maps: str, protocol: str) -> None:
    socket = dial(maps + "?watch=1", Sec_WebSocket_Protocol=protocol)
    assert (socket.status, socket.headers["sec-websocket-protocol"]) == (101, protocol)


def test_a_token_among_the_subprotocols(server: Any, dial: Dial, maps: str) -> None:
    namespace = maps.split("/")[4]
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    _, _, answer = server.call("POST", f"{account}/token", request)
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]}
    server.call("POST", f"{rbac}/roles", {"metadata": {"name": "watcher"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "watcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "watcher"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
    assert server.call("POST", f"{rbac}/rolebindings", binding)[0] == 201
    token = base64.urlsafe_b64encode(answer["status"]["token"].encode()).decode().rstrip("=")
    made = create(server, maps, "one")
    offered = f"{BEARER}{token}, base64.binary.k8s.io"
    socket = dial(maps + "?watch=1", certificate=False, Sec_WebSocket_Protocol=offered)
    assert socket.status == 101, socket._rest
    assert socket.headers["sec-websocket-protocol"] == "base64.binary.k8s.io"
    assert socket.watch_event()["object"] == made
    wrong = dial(maps + "?watch=1", certificate=False, Sec_WebSocket_Protocol=f"{BEARER}bm9uZQ, x")
    assert wrong.status == 401


@pytest.mark.parametrize(
    ("changed", "status", "body"),
    [
        ({"Sec_WebSocket_Key": ""}, 400, b"mismatch challenge/response"),
        ({"Sec_WebSocket_Version": ""}, 400, b"missing or bad WebSocket Version"),
        ({"Sec_WebSocket_Version": "8"}, 400, b"missing or bad WebSocket Version"),
        ({"Sec_WebSocket_Protocol": "a, b"}, 400, b""),
        ({"Origin": ""}, 403, b""),
        ({"Origin": "null"}, 403, b""),
        ({"Origin": "http://a b"}, 403, b""),
        ({"Origin": "", "Sec_WebSocket_Protocol": "a, b"}, 403, b""),
    ],
)
def test_bad_handshakes(dial: Dial, changed: dict[str, str], status: int, body: bytes) -> None:
    answer = dial("/api/v1/namespaces/default/configmaps?watch=1", **changed)
    assert (answer.status, answer.body()) == (status, body)
    assert answer.headers.get("sec-websocket-version") == ("13" if b"Version" in body else None)


@pytest.mark.parametrize("origin", ["http://localhost:8080", "https://evil.example", "file:///x", "/path", "a:b"])
def test_any_url_will_do_as_origin(dial: Dial, origin: str) -> None:
    assert dial("/api/v1/namespaces/default/configmaps?watch=1", Origin=origin).status == 101


@pytest.mark.parametrize(
    ("query", "status"),
    [("resourceVersion=x", 500), ("fieldSelector=nope%3D1", 400), ("labelSelector=a%20b", 400)],
)
def test_a_refused_watch_is_a_status(dial: Dial, query: str, status: int) -> None:
    answer = dial(f"/api/v1/namespaces/default/configmaps?watch=1&{query}", Sec_WebSocket_Version="8")
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")


def test_only_watches_switch(dial: Dial) -> None:
    answer = dial("/api/v1/namespaces/default/configmaps")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


def test_a_client_that_others_use(server: Any, maps: str) -> None:
    client = create_connection(
        f"wss://127.0.0.1:{server.port}{maps}?watch=1",
        sslopt={
            "ca_certs": str(server.data / "pki" / "ca.crt"),
            "certfile": str(server.data / "pki" / "admin.crt"),
            "keyfile": str(server.data / "pki" / "admin.key"),
        },
        timeout=120,
    )
    try:
        made = create(server, maps, "one")
        opcode, data = client.recv_data()
        assert opcode == ABNF.OPCODE_TEXT
        assert json.loads(data) == {"type": "ADDED", "object": made}
    finally:
        client.close()
