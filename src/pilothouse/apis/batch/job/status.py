"""What may be reported about a job.

Controllers other than the built-in one may manage jobs, so the server holds their reports to rules. A rule is applied
only when something it speaks of changes: a status that broke a rule earlier stays writable elsewhere.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.batch.job.indexes import IndexesError, count_indexes, find_overlap
from pilothouse.apis.validation import IMMUTABLE, non_negative
from pilothouse.machinery.field_errors import OMIT_VALUE, FieldError, Named, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import parse_time

STATUS: Final = Path("status")
_COUNTS: Final = ("active", "succeeded", "failed", "ready", "terminating")


class _Report:
    """A job with its status at hand."""

    __slots__ = ("complete", "failed", "failure_target", "finished", "spec", "status", "success_criteria_met")

    def __init__(self, job: Object) -> None:
        self.spec: Object = job["spec"]
        self.status: Object = job.get("status") or {}
        self.complete = self.has("Complete")
        self.failed = self.has("Failed")
        self.failure_target = self.has("FailureTarget")
        self.success_criteria_met = self.has("SuccessCriteriaMet")
        self.finished = self.complete or self.failed

    def has(self, kind: str, status: str = "True") -> bool:
        """Whether there is a condition of this kind in this state."""
        return any(c.get("type") == kind and c.get("status") == status for c in self.status.get("conditions") or ())

    def __getitem__(self, name: str) -> Any:
        return self.status.get(name)

    @property
    def indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")


class _Change:
    """Two reports, and what changed between them."""

    __slots__ = ("new", "old")

    def __init__(self, new: _Report, old: _Report) -> None:
        self.new = new
        self.old = old

    def of(self, *names: str) -> bool:
        """Whether any of these fields or states changed."""
        return any(
            getattr(self.new, name) != getattr(self.old, name)
            if name in _Report.__slots__
            else self.new[name] != self.old[name]
            for name in names
        )


def validate_job_status(obj: Object, old: Object) -> list[FieldError]:
    """Errors of a report about a job, given the one before."""
    change = _Change(_Report(obj), _Report(old))
    errs: list[FieldError] = []
    for name in _COUNTS:
        non_negative(change.new[name] or 0, STATUS, name, errs)
    _validate_uncounted(change.new["uncountedTerminatedPods"] or {}, errs)
    _validate_conditions(change, errs)
    _validate_finished(change, errs)
    _validate_indexes(change, errs)
    _validate_numbers(change, errs)
    _validate_success(change.new, errs)
    _validate_transition(change, errs)
    return errs


def _validate_uncounted(uncounted: Object, errs: list[FieldError]) -> None:
    seen: set[str] = set()
    for kind in ("succeeded", "failed"):
        for position, uid in enumerate(uncounted.get(kind) or ()):
            path = STATUS.child("uncountedTerminatedPods", kind).index(position)
            if not uid:
                errs.append(invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errs.append(duplicate(path, Named(uid)))
            seen.add(uid)


def _refuse_conditions(why: str, errs: list[FieldError]) -> None:
    errs.append(invalid(STATUS.child("conditions"), OMIT_VALUE, why))


def _validate_conditions(change: _Change, errs: list[FieldError]) -> None:
    new = change.new
    started, completed = new["startTime"], new["completionTime"]
    path = STATUS.child("completionTime")
    if new.complete and new.failed and change.of("complete", "failed"):
        _refuse_conditions("cannot set Complete=True and Failed=true conditions", errs)
    if new.complete and new.failure_target and change.of("complete", "failure_target"):
        _refuse_conditions("cannot set Complete=True and FailureTarget=true conditions", errs)
    if change.of("complete", "completionTime"):
        if completed and not new.complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            errs.append(invalid(path, completed, why))
        if not completed and new.complete:
            errs.append(required(path, "completionTime is required for Complete jobs"))
    moved = change.of("startTime", "completionTime")
    if moved and started and completed and parse_time(completed) < parse_time(started):
        errs.append(invalid(path, completed, "must be equal to or after `startTime`"))
    if new.failed and not new.failure_target and change.of("failed", "failedIndexes"):
        _refuse_conditions("cannot set Failed=True condition without the FailureTarget=true condition", errs)
    if new.complete and not new.success_criteria_met and change.of("complete", "success_criteria_met"):
        _refuse_conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition", errs)


def _validate_finished(change: _Change, errs: list[FieldError]) -> None:
    new = change.new
    if not new.finished:
        return
    if (new["active"] or 0) > 0 and change.of("finished", "active"):
        errs.append(invalid(STATUS.child("active"), new["active"], "active>0 is invalid for finished job"))
    nothing_to_do = new.spec.get("suspend") is True and new.spec.get("completions") == 0
    if not new["startTime"] and change.of("finished", "startTime") and not nothing_to_do:
        errs.append(required(STATUS.child("startTime"), "startTime is required for finished job"))
    uncounted = new["uncountedTerminatedPods"] or {}
    if (uncounted.get("failed") or uncounted.get("succeeded")) and change.of("finished", "uncountedTerminatedPods"):
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        errs.append(invalid(STATUS.child("uncountedTerminatedPods"), shown, "must be empty for finished job"))


def _validate_indexes(change: _Change, errs: list[FieldError]) -> None:
    new = change.new
    completions, per_index = new.spec.get("completions"), new.spec.get("backoffLimitPerIndex")
    completed, failed = new["completedIndexes"] or "", new["failedIndexes"]
    done, lost = STATUS.child("completedIndexes"), STATUS.child("failedIndexes")
    if completions is not None and change.of("completedIndexes"):
        _validate_set(completed, completions, "completedIndexes", done, errs)
    if completions is not None and per_index is not None and failed is not None and change.of("failedIndexes"):
        _validate_set(failed, completions, "failedIndexes", lost, errs)
    if completed and not new.indexed and change.of("completedIndexes"):
        why = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errs.append(invalid(done, completed, why))
    if failed is not None and per_index is None and change.of("failedIndexes"):
        errs.append(invalid(lost, failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
    if completions is not None and failed is not None and change.of("failedIndexes", "completedIndexes"):
        shared = find_overlap(completed, failed, completions)
        if shared is not None:
            errs.append(invalid(lost, failed, f"failedIndexes and completedIndexes overlap at index: {shared}"))


def _validate_set(text: str, completions: int, name: str, path: Path, errs: list[FieldError]) -> None:
    try:
        count_indexes(text, completions)
    except IndexesError as error:
        errs.append(invalid(path, text, f"error parsing {name}: {error}"))


def _validate_numbers(change: _Change, errs: list[FieldError]) -> None:
    new = change.new
    if (new["terminating"] or 0) > 0 and new.finished and change.of("finished", "terminating"):
        why = "terminating>0 is invalid for finished job"
        errs.append(invalid(STATUS.child("terminating"), new["terminating"], why))
    ready = new["ready"]
    if ready is not None and ready > (new["active"] or 0) and change.of("ready", "active"):
        errs.append(invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"))


def _validate_success(new: _Report, errs: list[FieldError]) -> None:
    if new.success_criteria_met and new.failed:
        _refuse_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", errs)
    if new.success_criteria_met and new.failure_target:
        _refuse_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errs)
    if new.spec.get("successPolicy") is not None and not new.success_criteria_met and new.complete:
        why = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        _refuse_conditions(why, errs)


def _validate_transition(change: _Change, errs: list[FieldError]) -> None:
    new, old = change.new, change.old
    for kind in ("Failed", "Complete", "FailureTarget"):
        if old.has(kind) and not new.has(kind):
            _refuse_conditions(f"cannot disable the terminal {kind}=True condition", errs)
    elastic = new.indexed and new.spec.get("completions") == new.spec.get("parallelism")
    errs += (
        invalid(STATUS.child(name), new[name] or 0, f"cannot decrease the {name} counter")
        for name in (("failed",) if elastic else ("failed", "succeeded"))
        if (new[name] or 0) < (old[name] or 0)
    )
    before, after = old["completionTime"], new["completionTime"]
    if after and before and after != before:
        errs.append(invalid(STATUS.child("completionTime"), after, IMMUTABLE))
    resumes = old.has("Suspended") and new.has("Suspended", "False")
    if old["startTime"] and change.of("startTime") and not resumes and not new.spec.get("suspend"):
        why = "field is immutable for unsuspended job once set"
        errs.append(invalid(STATUS.child("startTime"), new["startTime"], why))
    if old.success_criteria_met and not new.success_criteria_met:
        _refuse_conditions("cannot disable the SuccessCriteriaMet=True condition", errs)
    if old.complete and not old.success_criteria_met and new.success_criteria_met:
        why = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        _refuse_conditions(why, errs)
