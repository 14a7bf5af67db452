"""The strategies of jobs and cron jobs, by resource."""

from __future__ import annotations

from pilothouse.apis.strategy_index import StrategyIndex

STRATEGIES = StrategyIndex(
    __package__,
    {
        "cronjobs": "cron_job.strategy.CronJobStrategy",
        "jobs": "job.strategy.JobStrategy",
    },
)
