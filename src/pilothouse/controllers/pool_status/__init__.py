"""Answers ResourcePoolStatusRequests: how many devices pools have, and how many of them can be had."""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.pool_status.controller import PoolStatus


def start(context: ControllerContext) -> None:
    """Start the controller."""
    PoolStatus(context).start(context.supervisor)
