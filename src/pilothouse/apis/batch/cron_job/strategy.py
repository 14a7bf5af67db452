"""Cron jobs: jobs made on a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.apps.workload import WorkloadStrategy, shown_selector
from pilothouse.apis.batch.cron_job.columns import CRON_JOB_COLUMNS
from pilothouse.apis.batch.cron_job.defaults import default_cron_job
from pilothouse.apis.batch.cron_job.schedule import ScheduleError, check_schedule
from pilothouse.apis.batch.cron_job.time_zones import find_time_zone, is_well_formed
from pilothouse.apis.batch.job.strategy import warn_about_job_spec
from pilothouse.apis.batch.job.validation import validate_job_spec
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Context, StatusStrategy, Strategy
from pilothouse.apis.validation import non_negative, one_of_required
from pilothouse.machinery.field_errors import FieldError, Path, as_json, invalid, not_supported, required
from pilothouse.machinery.objects import Object

SPEC: Final = Path("spec")
NAME_LIMIT: Final = 52
"""Jobs get the cron job's name and eleven characters of time; their own limit is 63."""
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_EXPLICIT: Final = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
_ZONE_WARNING: Final = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)


def validate_cron_job_spec(spec: Object, old: Object | None, options: PodValidationOptions) -> ErrorList:
    """Errors of a cron job's spec; ``old`` is the one it replaces."""
    found = ErrorList()
    errs = found.errors
    if not spec.get("schedule"):
        found.declared.append(required(SPEC.child("schedule")))
    else:
        _validate_schedule(spec, errs, zone_allowed=old is not None and "TZ" in old.get("schedule", ""))
    non_negative(spec.get("startingDeadlineSeconds") or 0, SPEC, "startingDeadlineSeconds", errs)
    if old is None or old.get("timeZone") != spec.get("timeZone"):
        _validate_time_zone(spec.get("timeZone"), SPEC.child("timeZone"), errs)
    one_of_required(spec.get("concurrencyPolicy", ""), _POLICIES, SPEC, "concurrencyPolicy", errs)
    _validate_template(spec["jobTemplate"]["spec"], SPEC.child("jobTemplate", "spec"), errs, options)
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        non_negative(spec.get(name) or 0, SPEC, name, errs)
    return found


def _validate_schedule(spec: Object, errs: list[FieldError], *, zone_allowed: bool) -> None:
    schedule, path = spec["schedule"], SPEC.child("schedule")
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        errs.append(invalid(path, schedule, str(error)))
    if "TZ" not in schedule:
        return
    if not zone_allowed:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errs.append(invalid(path, schedule, why))
    elif spec.get("timeZone") is not None:
        errs.append(invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule"))


def _validate_time_zone(zone: str | None, path: Path, errs: list[FieldError]) -> None:
    if zone is None:
        return
    shown = as_json(zone)
    if not zone:
        errs.append(invalid(path, shown, "timeZone must be nil or non-empty string"))
        return
    if not is_well_formed(zone):
        errs.append(invalid(path, shown, f"unknown time zone {zone}"))
        return
    if zone.lower() == "local":
        errs.append(invalid(path, shown, _EXPLICIT))
    try:
        find_time_zone(zone)
    except ValueError as error:
        errs.append(invalid(path, shown, str(error)))


def _validate_template(spec: Object, path: Path, errs: list[FieldError], options: PodValidationOptions) -> None:
    """A job of which every selector is to be made by the server."""
    validate_job_spec(spec, path, errs, options)
    if spec.get("selector") is not None:
        shown = shown_selector(spec["selector"])
        errs.append(invalid(path.child("selector"), shown, "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errs.append(not_supported(path.child("manualSelector"), True, ("nil", "false")))


class CronJobStatusStrategy(StatusStrategy):
    """What the cron job controller reports: anything."""

    def default(self, obj: Object) -> None:
        default_cron_job(obj)


class CronJobStrategy(WorkloadStrategy):
    """Cron jobs."""

    type_name = "batch.v1.CronJob"
    warns_about_names = True
    template_path = ("spec", "jobTemplate", "spec", "template")
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": CronJobStatusStrategy}
    columns = CRON_JOB_COLUMNS

    def default(self, obj: Object) -> None:
        default_cron_job(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        errs = validate_cron_job_spec(obj["spec"], None, options_for_template(self.gates))
        name = obj["metadata"].get("name", "")
        if len(name.encode()) > NAME_LIMIT:
            why = f"must be no more than {NAME_LIMIT} characters"
            errs.errors.append(invalid(Path("metadata", "name"), name, why))
        return errs.listed()

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        options = options_for_template(self.gates, self.template_of(old))
        return validate_cron_job_spec(obj["spec"], old["spec"], options).listed()

    def template_warnings(self, obj: Object) -> list[str]:
        job = obj["spec"]["jobTemplate"]["spec"]
        return warn_about_job_spec(job, "spec.jobTemplate.spec") + super().template_warnings(obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        warnings = super().warnings_on_update(ctx, obj, old)
        return [*warnings, _ZONE_WARNING] if "TZ" in obj["spec"].get("schedule", "") else warnings
