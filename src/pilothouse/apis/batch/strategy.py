"""The strategies of jobs and cron jobs."""

from __future__ import annotations

from pilothouse.apis.batch.cron_job import CronJobStrategy
from pilothouse.apis.batch.job import JobStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"cronjobs": CronJobStrategy, "jobs": JobStrategy}
