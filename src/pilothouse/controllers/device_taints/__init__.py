"""Evicts pods whose devices have NoExecute taints, and tells of rules what they do."""

from __future__ import annotations

from pilothouse.controllers.device_taints.controller import DeviceTaintEviction
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the controller."""
    DeviceTaintEviction(context).controller.start(context.supervisor)
