"""One connection to a server that is compared, on which a request is sent before the answer is waited for.

So two servers work on a request at the same time. It knows as much of HTTP/1.1 as both speak, and does no more than it
must: the fuzzer shares the processors with what it asks.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import NamedTuple

_TIMEOUT_SECONDS = 30.0
_PIECE = 65_536
_NO_BODY = (204, 304)
_COMPARED = (b"allow", b"cache-control", b"connection", b"content-encoding", b"location", b"retry-after", b"vary",
             b"www-authenticate", b"x-content-type-options")  # fmt: skip


class Reply(NamedTuple):
    """What came back, as it came."""

    status: int
    kind: str
    body: bytes
    warnings: Sequence[bytes] = ()
    headers: Sequence[bytes] = ()
    """Those lines whose values do not depend on the server or the moment."""


class HungUp(Exception):
    """The server has closed the connection within an answer, or says something else than HTTP."""


class Connection:
    """Sends a request, and reads its answer."""

    def __init__(self, port: int) -> None:
        context = ssl._create_unverified_context()
        plain = socket.create_connection(("127.0.0.1", port), _TIMEOUT_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain)
        self._held = b""
        self._head_only = False

    def send(self, method: str, path: str, headers: str, body: bytes | None) -> None:
        """Send a request; ``headers`` are whole lines."""
        self._head_only = method == "HEAD"
        length = "" if body is None and method in ("GET", "HEAD") else f"Content-Length: {len(body or b'')}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}{length}\r\n"
        self._socket.sendall(head.encode("latin-1") + (body or b""))

    def receive(self) -> Reply:
        """The answer to the last request."""
        first, *lines = self._until(b"\r\n\r\n").split(b"\r\n")
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise HungUp
        kind, length, chunked = "", None, False
        warnings, compared = [], []
        for line in lines:
            name, _, value = line.partition(b":")
            match name.lower():
                case b"content-type":
                    kind = value.strip().decode("latin-1")
                case b"content-length":
                    length = int(value)
                case b"transfer-encoding":
                    chunked = True
                case b"warning":
                    warnings.append(value.strip())
                case known if known in _COMPARED:
                    compared.append(known + b": " + value.strip())
        status = int(words[1])
        if self._head_only or status in _NO_BODY:
            body = b""
        elif chunked:
            body = self._chunks()
        else:
            body = self._to_the_end() if length is None else self._exactly(length)
        return Reply(status, kind, body, warnings, sorted(compared))

    def close(self) -> None:
        """Give the connection up."""
        self._socket.close()

    def _chunks(self) -> bytes:
        found = []
        while size := int(self._until(b"\r\n").partition(b";")[0], 16):
            found.append(self._exactly(size))
            self._exactly(2)
        while self._until(b"\r\n"):
            pass
        return b"".join(found)

    def _until(self, end: bytes) -> bytes:
        while (at := self._held.find(end)) < 0:
            self._more()
        found, self._held = self._held[:at], self._held[at + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            self._more()
        found, self._held = self._held[:size], self._held[size:]
        return found

    def _to_the_end(self) -> bytes:
        try:
            while True:
                self._more()
        except HungUp:
            found, self._held = self._held, b""
            return found

    def _more(self) -> None:
        piece = self._socket.recv(_PIECE)
        if not piece:
            raise HungUp
        self._held += piece
