"""Horizontal pod autoscalers: as many replicas as their metrics ask for, within limits and not too fast."""

from __future__ import annotations

from pilothouse.controllers.autoscaling.controller import Autoscalers
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the controller."""
    Autoscalers(context).controller.start(context.supervisor)
