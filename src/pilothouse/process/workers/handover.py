"""Passing connections from the process that accepts them to the one that will serve them.

One process listens. It hands connections to all processes in turn, itself included, by sending the descriptor over a
Unix socket; those that have many more than others (they are older, or their clients stay) are passed over.

Considered and left: SO_REUSEPORT, where the kernel spreads connections by their address (a few clients land as chance
has it, a second server on the port goes unnoticed, and what waits in the queue of a worker that dies is lost), and one
listening socket that all accept from (whoever wakes first takes all that wait).
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

logger = logging.getLogger(__name__)
_MARK: Final = b"c"
_MORE: Final = 1.25
_FEW: Final = 64

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


def handover_pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a way for descriptors; neither blocks."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in ends:
        end.setblocking(False)
    return ends


def hand_over(way: socket.socket, connection: socket.socket) -> bool:
    """Send a connection along; False if it does not go through now."""
    try:
        socket.send_fds(way, [_MARK], [connection.fileno()])
    except OSError:
        return False
    return True


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

    def __init__(self, way: socket.socket, address: tuple[str, int]) -> None:
        """``address`` is where the other process listens."""
        self._way, self._address = way, address
        self.received = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. Raises OSError, BlockingIOError when there is none."""
        _, descriptors, _, _ = socket.recv_fds(self._way, len(_MARK), 1)
        if not descriptors:
            raise BlockingIOError
        self.received += 1
        connection = socket.socket(fileno=descriptors[0])
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
