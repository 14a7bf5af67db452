"""Cron jobs through batch/v1beta1 and v2alpha1: today's, but deleting one leaves its jobs behind."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apis.batch.cron_job.strategy import CronJobStrategy
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.legacy.workloads import ORPHANS
from pilothouse.apis.strategy_rules import DeletionRules


class OrphaningCronJobs(CronJobStrategy):
    """Deleting one leaves its jobs behind."""

    deletion_rules: ClassVar[DeletionRules] = ORPHANS


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "cronjobs"): Older(strategy=OrphaningCronJobs),
    ("v2alpha1", "cronjobs"): Older(strategy=OrphaningCronJobs, unowned=()),
}
