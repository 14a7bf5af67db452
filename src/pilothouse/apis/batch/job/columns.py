"""Table columns of jobs."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.apps.columns import container_columns, selector_cell, selector_column
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery import times
from pilothouse.machinery.objects import Object

_JOB_STATUS: Final = "batch.v1.JobStatus"


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


def _duration_cell(obj: Object) -> Age | str:
    started, ended = _status(obj).get("startTime"), _status(obj).get("completionTime")
    if not started:
        return ""
    if not ended:
        return age_of(started)
    return times.human_duration(times.parse_time(ended).since(times.parse_time(started)))


JOB_COLUMNS: Final = (
    NAME,
    Column("Status", "string", _status_cell, description="Status of the job."),
    Column("Completions", "string", _completions_cell, description=Doc(_JOB_STATUS, "succeeded")),
    Column("Duration", "string", _duration_cell, description="Time required to complete the job."),
    AGE,
    *container_columns(lambda obj: obj["spec"]["template"]),
    selector_column(selector_cell, "batch.v1.JobSpec"),
)
