"""The strategies of jobs and cron jobs, by resource."""

from __future__ import annotations

from pilothouse.apis.batch.cron_job.strategy import CronJobStrategy
from pilothouse.apis.batch.job.strategy import JobStrategy
from pilothouse.apis.strategy import Strategy

STRATEGIES: dict[str, type[Strategy]] = {"cronjobs": CronJobStrategy, "jobs": JobStrategy}
