"""Table columns of cron jobs."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.apps.columns import container_columns, selector_column
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object

_CRON_SPEC: Final = "batch.v1.CronJobSpec"


def _status(obj: Object) -> Object:
    return obj.get("status") or {}


def _suspended_cell(obj: Object) -> str:
    suspended: Any = obj["spec"].get("suspend")
    return "<unset>" if suspended is None else "True" if suspended else "False"


def _last_run_cell(obj: Object) -> Age | str:
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
