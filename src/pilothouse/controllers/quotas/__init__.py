"""Resource quotas: what a namespace uses of what it may have.

Admission charges what is created; this controller says what is left in truth when something goes, shrinks or ends, and
looks at everything again every five minutes.
"""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.quotas.controller import QuotaController


def start(context: ControllerContext) -> None:
    """Start the controller."""
    QuotaController(context).start(context.supervisor)
