"""Passing connections from the process that accepts them to the one that will serve them.

One process listens. It hands connections to all processes in turn, itself included, by sending the descriptor over a
Unix socket; those that have many more than others (they are older, or their clients stay) are passed over. So are
those that do not answer: what is on its way to a process that is stopped, or that the machine does not let run, is
taken out of the socket again, which can be done from either end, and goes to somebody else.

Considered and left: SO_REUSEPORT, where the kernel spreads connections by their address (a few clients land as chance
has it, a second server on the port goes unnoticed, and what waits in the queue of a worker that dies is lost), and one
listening socket that all accept from (whoever wakes first takes all that wait).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

_MARK: Final = b"c"
_MORE: Final = 1.25
_FEW: Final = 64
LATE_SECONDS: Final = 0.5
"""A process that has not taken what waits for it for so long does not answer."""

Give = Callable[[socket.socket], bool]
"""Gives a connection away; False if it is to stay here."""


class Turns:
    """Whose turn it is to get a connection. What is known of loads may be late, so they only rule out the extremes."""

    def __init__(self) -> None:
        self._last = -1

    def next(self, loads: Sequence[int]) -> int:
        """The number of the next one that has not many more than the one with the fewest."""
        most = min(loads) * _MORE + _FEW
        for step in range(1, len(loads) + 1):
            number = (self._last + step) % len(loads)
            if loads[number] <= most:
                break
        self._last = number
        return number


class Handover:
    """The way of connections to a worker, and how many are on it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        """``theirs`` is for the worker, and stays open here as well."""
        for end in (self._ours, self.theirs):
            end.setblocking(False)
        self._sent = self._received = 0
        self._since = 0.0
        """When the last one arrived, or the first of those was sent that are under way."""

    @property
    def under_way(self) -> int:
        """How many were sent and have not arrived."""
        return self._sent - self._received

    @property
    def is_late(self) -> bool:
        """Whether the worker should have taken some by now."""
        return self.under_way > 0 and self._clock() - self._since >= LATE_SECONDS

    def send(self, connection: socket.socket) -> bool:
        """Send a connection along; False if it does not go through now."""
        try:
            socket.send_fds(self._ours, [_MARK], [connection.fileno()])
        except OSError:
            return False
        if not self.under_way:
            self._since = self._clock()
        self._sent += 1
        return True

    def note_received(self, count: int) -> None:
        """So many have arrived since the beginning."""
        if count > self._received:
            self._received, self._since = count, self._clock()

    def take_back(self) -> Iterator[socket.socket]:
        """Those that the worker has not taken: nobody else has them from now on."""
        with suppress(OSError):
            while found := _receive(self.theirs):
                self._sent -= 1
                yield found

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()


def _receive(way: socket.socket) -> socket.socket | None:
    """A connection that was sent along; None for a message without one. Raises OSError, BlockingIOError without any."""
    _, descriptors, _, _ = socket.recv_fds(way, len(_MARK), 1)
    return socket.socket(fileno=descriptors[0]) if descriptors else None


class SharingSocket:
    """A listening socket that keeps only what it does not give away."""

    def __init__(self, listening: socket.socket, give: Give) -> None:
        self._listening, self._give = listening, give

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection to be served here. Raises OSError, BlockingIOError when there is none."""
        while True:
            connection, address = self._listening.accept()
            if not self._give(connection):
                return connection, address
            connection.close()

    def fileno(self) -> int:
        return self._listening.fileno()

    def getsockname(self) -> Any:
        return self._listening.getsockname()

    def close(self) -> None:
        self._listening.close()


class ArrivalSocket:
    """Where connections arrive that another process has accepted."""

    def __init__(self, way: socket.socket, address: tuple[str, int], arrived: Callable[[], None]) -> None:
        """``address`` is where the other process listens; ``arrived`` is told of each connection."""
        self._way, self._address, self._arrived = way, address, arrived
        self.received = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. Raises OSError, BlockingIOError when there is none."""
        connection = _receive(self._way)
        if connection is None:
            raise BlockingIOError
        self.received += 1
        self._arrived()
        try:
            return connection, connection.getpeername()
        except OSError as error:  # the client has gone already
            connection.close()
            raise ConnectionAbortedError(error.errno, error.strerror) from None

    def fileno(self) -> int:
        return self._way.fileno()

    def getsockname(self) -> Any:
        return self._address

    def close(self) -> None:
        self._way.close()
