"""What users of cron jobs may leave open. Everything is idempotent and in place."""

from __future__ import annotations

from pilothouse.apis.batch.job.defaults import default_job_spec
from pilothouse.machinery.objects import Object


def default_cron_job(obj: Object) -> None:
    """Runs may overlap; three good and one failed job are kept."""
    spec = obj["spec"]
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    if spec.get("successfulJobsHistoryLimit") is None:
        spec["successfulJobsHistoryLimit"] = 3
    if spec.get("failedJobsHistoryLimit") is None:
        spec["failedJobsHistoryLimit"] = 1
    default_job_spec(spec["jobTemplate"]["spec"])
