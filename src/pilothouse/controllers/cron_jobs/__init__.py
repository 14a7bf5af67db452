"""Cron jobs: jobs that are started by the clock."""

from __future__ import annotations

from pilothouse.controllers.cron_jobs.controller import CronJobController
from pilothouse.controllers.manager.context import ControllerContext


def start(context: ControllerContext) -> None:
    """Start the cron job controller."""
    CronJobController(context).start(context.supervisor)
