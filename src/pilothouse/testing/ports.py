"""Ports for servers that are told where to listen.

A port that was free a moment ago may be somebody else's by the time a server has started, or is started again: on a
busy machine that takes seconds, in which other processes ask the system for hundreds of ports. So each port given here
is kept by a socket that is bound to it and never listens. Whoever sets SO_REUSEADDR, as servers do, may listen there
all the same; the system gives the port to nobody else; and until somebody listens, connections are refused as on any
other.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Final

_KEPT: Final = 128
"""The last ones: a process that asks for many has ended the servers on the first of them, or they listen."""
_keepers: Final[deque[socket.socket]] = deque()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, and nobody else is given while this process is there."""
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    _keepers.append(keeper)
    if len(_keepers) > _KEPT:
        _keepers.popleft().close()
    return int(keeper.getsockname()[1])
