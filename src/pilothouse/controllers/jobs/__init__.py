"""Jobs: pods that are to end, so many of them, retried when they fail."""

from __future__ import annotations

from pilothouse.controllers.jobs.controller import JobController
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the job controller."""
    JobController(context).start(context.supervisor)
