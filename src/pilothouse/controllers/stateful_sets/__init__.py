"""Stateful sets: pods with names and storage of their own, brought up and down in order."""

from __future__ import annotations

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.stateful_sets.controller import StatefulSetController


def start(context: ControllerContext) -> None:
    """Start the stateful set controller."""
    StatefulSetController(context).start(context.supervisor)
