"""Table columns of jobs and cron jobs."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.apps.columns import container_columns, selector_cell, selector_column
from pilothouse.apis.columns import AGE, NAME, age_of
from pilothouse.apis.strategy import Column, Doc, Object
from pilothouse.machinery import labels, times

_JOB_STATUS: Final = "batch.v1.JobStatus"
_CRON_SPEC: Final = "batch.v1.CronJobSpec"


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _status_cell(obj: Object) -> str:
    found: dict[str, str] = {}
    for condition in _status(obj).get("conditions") or ():
        found.setdefault(condition.get("type", ""), condition.get("status", ""))
    true = {kind for kind, status in found.items() if status == "True"}
    for kind in ("Complete", "Failed"):
        if kind in true:
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet") if kind in true), "Running")


def _completions_cell(obj: Object) -> str:
    done, wanted = _status(obj).get("succeeded", 0), obj["spec"].get("completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = obj["spec"].get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration_cell(obj: Object) -> str:
    started, ended = _status(obj).get("startTime"), _status(obj).get("completionTime")
    if not started:
        return ""
    end = times.parse_time(ended) if ended else times.now_instant()
    return times.human_duration(end.since(times.parse_time(started)))


JOB_COLUMNS: Final = (
    NAME,
    Column("Status", "string", _status_cell, description="Status of the job."),
    Column("Completions", "string", _completions_cell, description=Doc(_JOB_STATUS, "succeeded")),
    Column("Duration", "string", _duration_cell, description="Time required to complete the job."),
    AGE,
    *container_columns(lambda obj: obj["spec"]["template"]),
    selector_column(selector_cell, "batch.v1.JobSpec"),
)


def _suspended_cell(obj: Object) -> str:
    suspended: Any = obj["spec"].get("suspend")
    return "<unset>" if suspended is None else "True" if suspended else "False"


def _last_run_cell(obj: Object) -> str:
    last = _status(obj).get("lastScheduleTime")
    return age_of(last) if last else "<none>"


def _template_selector_cell(obj: Object) -> str:
    return labels.format_object(obj["spec"]["jobTemplate"]["spec"].get("selector"))


CRON_JOB_COLUMNS: Final = (
    NAME,
    Column("Schedule", "string", lambda obj: obj["spec"].get("schedule", ""), description=Doc(_CRON_SPEC, "schedule")),
    Column(
        "Timezone", "string", lambda obj: obj["spec"].get("timeZone", "<none>"), description=Doc(_CRON_SPEC, "timeZone")
    ),
    Column("Suspend", "boolean", _suspended_cell, description=Doc(_CRON_SPEC, "suspend")),
    Column(
        "Active",
        "integer",
        lambda obj: len(_status(obj).get("active") or ()),
        description=Doc("batch.v1.CronJobStatus", "active"),
    ),
    Column("Last Schedule", "string", _last_run_cell, description=Doc("batch.v1.CronJobStatus", "lastScheduleTime")),
    AGE,
    *container_columns(lambda obj: obj["spec"]["jobTemplate"]["spec"]["template"]),
    selector_column(_template_selector_cell, "batch.v1.JobSpec"),
)
