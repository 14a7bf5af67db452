"""The jobs of a cron job: how they are made, which of them are old, and the list of those that run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from pilothouse.controllers.cron_jobs.times import zone_of
from pilothouse.controllers.jobs.conditions import true_condition
from pilothouse.controllers.runtime.events import reference_to
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.machinery.objects import Object

_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_name(cron_job: Object, scheduled: int) -> str:
    """One name for each time, so that no time is served twice."""
    return f"{cron_job['metadata']['name']}-{scheduled // 60}"


def make_job(cron_job: Object, scheduled: int) -> Object:
    """The job of a scheduled time."""
    template = cron_job["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    local = datetime.fromtimestamp(scheduled, zone_of(cron_job["spec"].get("timeZone") or ""))
    written = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    metadata: dict[str, Any] = {
        "name": job_name(cron_job, scheduled),
        "namespace": cron_job["metadata"]["namespace"],
        "annotations": {**(given.get("annotations") or {}), _SCHEDULED: written},
        "ownerReferences": [controller_reference(cron_job, "CronJob", "batch/v1")],
    }
    if given.get("labels"):
        metadata["labels"] = dict(given["labels"])
    return {"metadata": metadata, "spec": dict(template["spec"])}


def jobs_beyond_history(cron_job: Object, jobs: Sequence[Object]) -> list[Object]:
    """The oldest ended jobs that the limits of history have no room for."""
    found: list[Object] = []
    for limit, type in (("successfulJobsHistoryLimit", "Complete"), ("failedJobsHistoryLimit", "Failed")):
        most = cron_job["spec"].get(limit)
        ended = [job for job in jobs if true_condition(job, type) is not None]
        if most is not None and len(ended) > most:
            found += sorted(ended, key=_by_start)[: len(ended) - most]
    return found


def _by_start(job: Object) -> tuple[bool, str, str]:
    began = (job.get("status") or {}).get("startTime") or ""
    return not began, began, job["metadata"]["name"]


def active_of(cron_job: Object) -> list[Object]:
    """References to the jobs that run, as the status has them."""
    return list((cron_job.get("status") or {}).get("active") or ())


def is_active(cron_job: Object, uid: str) -> bool:
    """Whether the status has a job among those that run."""
    return any(each.get("uid") == uid for each in active_of(cron_job))


def add_active(cron_job: Object, job: Object) -> None:
    """Enter a job among those that run."""
    reference = reference_to(job, "Job", "batch/v1")
    cron_job.setdefault("status", {})["active"] = [*active_of(cron_job), reference]


def drop_active(cron_job: Object, uid: str) -> None:
    """Take a job from those that run."""
    left = [each for each in active_of(cron_job) if each.get("uid") != uid]
    if left:
        cron_job["status"]["active"] = left
    else:
        cron_job.setdefault("status", {}).pop("active", None)
