"""How soon a thread that waits for the interpreter's lock gets it.

A thread that computes gives the lock away when another has waited for the switch interval: 5 ms by default. An event
loop beside one waits that long at each turn. And a loop that is busy itself lets go for an instant at every turn, which
restarts the patience of a thread that waits: a writer starves beside it for whole seconds (measured). With an interval
that is shorter than a turn, both wait for one turn of the other.
"""

from __future__ import annotations

import sys
from typing import Final

_SWITCH_SECONDS: Final = 5e-5


def take_short_turns() -> None:
    """To be called by whoever starts threads that work beside an event loop."""
    sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
