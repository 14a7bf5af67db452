"""The lines between the members of an etcd cluster, which tests can cut: a partition, while clients reach everybody.

Each member is told to others by the address of a proxy in front of it. Members name themselves in what they send to
each other, so a proxy knows whose connection it carries.
"""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress
from typing import Final

_FROM: Final = re.compile(rb"\r\nX-Server-From: *([0-9a-f]+)\r\n", re.IGNORECASE)
_HEAD: Final = 64 * 1024
_PIECE: Final = 64 * 1024


class Link:
    """The proxy in front of one member's peer port."""

    def __init__(self, port: int) -> None:
        """``port`` is where the member itself listens."""
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._lock = threading.Lock()
        self._carried: dict[int, tuple[str, tuple[socket.socket, socket.socket]]] = {}
        self._next = 0
        self._refused: frozenset[str] | None = frozenset()
        """The ids of members that are cut off; None for everybody."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, senders: frozenset[str] | None) -> None:
        """Carry nothing of these members from now on (None: of anybody). Who does not say who he is is cut too."""
        with self._lock:
            self._refused = senders
            broken = [pair for sender, pair in self._carried.values() if self._is_refused(sender)]
        for pair in broken:
            _hang_up(*pair)

    def close(self) -> None:
        """Carry nothing any more."""
        self._listening.close()
        self.cut(None)

    def _is_refused(self, sender: str) -> bool:
        return self._refused is None or sender in self._refused or bool(self._refused and not sender)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and len(head) < _HEAD:
                piece = near.recv(_PIECE)
                if not piece:
                    return
                head += piece
            named = _FROM.search(head)
            with socket.create_connection(("127.0.0.1", self._target)) as far:
                number = self._begin(named[1].decode() if named else "", near, far)
                if number is None:
                    return
                try:
                    far.sendall(head)
                    back = threading.Thread(target=_carry, args=(far, near), daemon=True)
                    back.start()
                    _carry(near, far)
                    back.join()
                finally:
                    with self._lock:
                        del self._carried[number]

    def _begin(self, sender: str, near: socket.socket, far: socket.socket) -> int | None:
        with self._lock:
            if self._is_refused(sender):
                return None
            self._next += 1
            self._carried[self._next] = sender, (near, far)
            return self._next


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_PIECE):
            sink.sendall(data)
    _hang_up(source, sink)


def _hang_up(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
