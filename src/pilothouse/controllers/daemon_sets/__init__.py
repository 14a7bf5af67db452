"""Daemon sets: one pod on each node that it fits."""

from __future__ import annotations

from pilothouse.controllers.daemon_sets.controller import DaemonSetController
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the daemon set controller."""
    DaemonSetController(context).start(context.supervisor)
