"""The process that a busy writer has its statements executed by: ``commit_process.py DATABASE SOCKET``.

``DATABASE`` is a URI, which says that the file has to be there: a database is never made here. Each message on the
socket is a statement, and is answered by whether it wrote rows. It ends when its parent does.

It is run as a script, without site-packages and without importing anything of ours, so that it is there in a few
milliseconds and takes a few megabytes.
"""

from __future__ import annotations

import marshal
import os
import resource
import select
import signal
import socket
import sqlite3
import sys
from contextlib import suppress
from time import perf_counter

MOST_BYTES = 1 << 20
"""Of a statement; the other side sends much less."""
LOOK_SECONDS = 0.0004
"""For how long the next statement is looked for without sleeping, where it tends to come so soon."""
MOST_UNHEEDED = 1024
"""How many statements are followed by no look, at most, where looks were in vain."""
LOOKS = 16
"""After so many looks it is counted how often others took the processor: on a busy machine nothing is looked for."""
CROWDED_UNHEEDED = 256
_SETTINGS = ("busy_timeout = 5000", "synchronous = FULL", "wal_autocheckpoint = 4000")


class Connected:
    """The socket to the parent."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(False)
        self._unheeded = 0
        self._next_unheeded = 1
        self._interrupted = -1
        self._left = 0

    def receive(self) -> bytes:
        """The next message; empty when there is no parent any more."""
        if self._unheeded:
            self._unheeded -= 1
        elif self._left or self._is_left_alone():
            self._left -= 1
            until = perf_counter() + LOOK_SECONDS
            while perf_counter() < until:
                with suppress(BlockingIOError):
                    message = self._socket.recv(MOST_BYTES)
                    self._next_unheeded = 1
                    return message
            self._unheeded = self._next_unheeded
            self._next_unheeded = min(2 * self._next_unheeded, MOST_UNHEEDED)
        while True:
            select.select([self._socket], [], [])
            with suppress(BlockingIOError):
                return self._socket.recv(MOST_BYTES)

    def _is_left_alone(self) -> bool:
        before, now = self._interrupted, resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
        if 0 <= before < now - LOOKS:
            self._interrupted, self._unheeded = -1, CROWDED_UNHEEDED
            return False
        self._interrupted, self._left = now, LOOKS
        return True

    def send(self, message: bytes) -> None:
        """Answer."""
        self._socket.send(message)


def main() -> None:
    """Execute statements until nobody is there to send any."""
    # Interrupts of a terminal and ends of a service reach us too, but are for our parent, and we end with it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    database, descriptor = sys.argv[1], int(sys.argv[2])
    parent = Connected(descriptor)
    connection = sqlite3.connect(database, isolation_level=None, uri=True)
    for setting in _SETTINGS:
        connection.execute(f"PRAGMA {setting}")
    with suppress(OSError):
        parent.send(b"ready")
        while message := parent.receive():
            try:
                statement = marshal.loads(message)  # noqa: S302 - nobody but our parent has the other end
                written = connection.execute(*statement).rowcount > 0
            except Exception:
                written = False  # the other side tries by itself, and finds out why
            parent.send(b"written" if written else b"not written")
    connection.close()
    os._exit(0)


if __name__ == "__main__":
    main()
