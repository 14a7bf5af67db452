"""Connections are kept while the server keeps them, and replaced before a request is sent into the void."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pilothouse.credentials.pki import ensure_pki
from pilothouse.testing.connections import Connections

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n%b\r\nok"


class Peer:
    """Answers each connection with the given texts, one a request, and hangs up after the last."""

    def __init__(self, folder: Path, *conversations: list[bytes]) -> None:
        self.pki = ensure_pki(folder, dns_names=["localhost"], ip_addresses=["127.0.0.1"])
        self.context = ssl.create_default_context(cafile=self.pki.ca_cert)
        self._own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._own.load_cert_chain(self.pki.serving_cert, self.pki.serving_key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.hung_up = [threading.Event() for _ in conversations]
        self._thread = threading.Thread(target=self._serve, args=(conversations,))
        self._thread.start()

    def _serve(self, conversations: tuple[list[bytes], ...]) -> None:
        for answers, hung_up in zip(conversations, self.hung_up, strict=True):
            plain, _ = self._listening.accept()
            with self._own.wrap_socket(plain, server_side=True) as connection:
                for answer in answers:
                    while not connection.recv(65536).endswith(b"\r\n\r\n"):
                        pass
                    connection.sendall(answer)
            hung_up.set()

    def close(self) -> None:
        self._thread.join()
        self._listening.close()


Talk = Callable[..., tuple[Peer, Connections]]


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    opened: list[Peer | Connections] = []

    def start(*conversations: list[bytes]) -> tuple[Peer, Connections]:
        peer = Peer(tmp_path / "pki", *conversations)
        connections = Connections("127.0.0.1", peer.port, peer.context, 60)
        opened.extend((peer, connections))
        return peer, connections

    yield start
    for each in reversed(opened):
        each.close()


def test_requests_share_a_connection(talk: Talk) -> None:
    _, connections = talk([OK % b"", OK % b""])
    for _ in range(2):
        answer, body = connections.request("GET", "/", None, {})
        assert (answer.status, body) == (200, b"ok")


def test_one_that_the_server_has_closed_is_replaced(talk: Talk) -> None:
    peer, connections = talk([OK % b""], [OK % b""])
    assert connections.request("POST", "/", None, {})[1] == b"ok"
    peer.hung_up[0].wait()
    assert connections.request("POST", "/", None, {})[1] == b"ok"


def test_one_that_is_told_to_close_or_upgraded_is_not_used_again(talk: Talk) -> None:
    upgraded = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    _, connections = talk([OK % b"Connection: close\r\n"], [upgraded], [OK % b""])
    assert [connections.request("GET", "/", None, {})[0].status for _ in range(3)] == [200, 101, 200]


def test_what_fails_is_told_and_the_next_request_has_another(talk: Talk) -> None:
    _, connections = talk([b""], [OK % b""])
    with pytest.raises(ConnectionError):
        connections.request("GET", "/", None, {})
    assert connections.request("GET", "/", None, {})[1] == b"ok"
