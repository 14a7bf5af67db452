"""Whether the mutating plug-ins must see an object a second time, and which webhooks run again then.

first run     a webhook changes the object    → whoever ran before it, and wants to, is due again
              a plug-in changed the object since a webhook saw it → that webhook is due again
second run    all plug-ins of our own, and the webhooks that are due; never a third run
"""

from __future__ import annotations

from typing import Any


class Reinvocation:
    """The state of one request, shared by the plug-ins that call out."""

    __slots__ = ("again", "required", "state")

    def __init__(self) -> None:
        self.required = False
        self.again = False
        """Whether this is the second run."""
        self.state: dict[str, Any] = {}
        """What each kind of caller keeps between the runs, by its name."""

    def require(self) -> None:
        """Ask for a second run."""
        self.required = True

    def begin(self) -> bool:
        """Start the second run if one was asked for."""
        if not self.required or self.again:
            return False
        self.again = True
        return True
