"""How the responders of an eviction take turns, and what each may report.

Several clients write the status of one eviction, so the server holds them to the order of things:

    Inactive ─→ Active ─→ Completed | Canceled | Interrupted

One responder is active at a time, by descending priority; the next becomes active in the write that ends the one
before. When the eviction has failed or the target is gone, nobody becomes active any more. A responder's report
changes only while it is active, and its times are those of the write, give or take half a minute.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, required
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import parse_time

LIMIT: Final = 11
_ENDED: Final = ("Canceled", "Completed", "Interrupted")
_ASSIGNED: Final = {"imperative-eviction.k8s.io/evictor": 100}
_RESERVED_BELOW: Final = 1000
_HEARTBEAT_SECONDS: Final = 20 * 60
_SKEW_SECONDS: Final = 30
_LONGEST_SECONDS: Final = 10 * 365 * 24 * 3600
_RESPONDERS: Final = Path("status", "responders")
_TARGETS: Final = Path("status", "targetResponders")


class Progress(NamedTuple):
    """What the conditions say, and when."""

    evicted: bool
    failed: bool
    now: str

    @property
    def final(self) -> bool:
        return self.evicted or self.failed


class Expectation(NamedTuple):
    """The states that a responder may be in now, and why."""

    states: tuple[str, ...]
    why: str


def validate_responders(status: Object, old: Object, progress: Progress) -> list[FieldError]:
    """Errors of ``targetResponders`` and ``responders``."""
    targets, reports = status.get("targetResponders") or [], status.get("responders") or []
    errs = _validate_targets(targets, old.get("targetResponders") or [], reports, progress)
    return errs + _validate_reports(reports, old.get("responders") or [], targets, progress.now)


def _validate_targets(
    targets: list[Object], old: list[Object], reports: list[Object], progress: Progress
) -> list[FieldError]:
    if old and len(targets) != len(old):
        return [invalid(_TARGETS, _shown(targets), "must preserve the same length and the same keys")]
    names = {target.get("name", "") for target in targets}
    if any(each.get("name", "") not in names for each in old):
        return [invalid(_TARGETS, _shown(targets), "must preserve the same keys")]
    if len(names) < len(targets) or len(targets) > LIMIT:
        return []
    reported = {report.get("name", ""): report for report in reports}
    positions = {target.get("name", ""): position for position, target in enumerate(targets)}
    before = sorted(old, key=_turn)
    errs: list[FieldError] = []
    ordered = sorted(targets, key=_turn)
    for turn, target in enumerate(ordered):
        name = target.get("name", "")
        path = _TARGETS.index(positions[name])
        errs += _validate_target(target, path, reported.get(name), _expect(turn, ordered, before, progress), progress)
    return errs


def _turn(target: Object) -> tuple[int, list[str], str]:
    """Descending priority; then by domain, from its last label; then by key."""
    priority = target.get("priority")
    domain, _, key = target.get("name", "").partition("/")
    return -priority if priority is not None else 1 << 40, domain.split(".")[::-1], key


def _expect(turn: int, targets: list[Object], old: list[Object], progress: Progress) -> Expectation:
    active = next((at for at, each in enumerate(old) if each.get("state") == "Active"), -1)
    changed = active >= 0 and targets[active].get("state") != "Active"
    all_done = progress.final or bool(old and old[-1].get("state") in _ENDED)
    if turn < active or (old and active < 0 and all_done):
        return Expectation((old[turn].get("state", ""),), "final state is immutable")
    if turn == active and changed:
        return Expectation(_ENDED, "this responder must reach a final state")
    if turn == active:
        if progress.final:
            return Expectation(_ENDED, "the eviction request has finished processing")
        return Expectation(("Active",), "the eviction request stays active")
    if (turn == 0 and not old) or (turn == active + 1 and changed):
        if progress.final:
            return Expectation(("Inactive",), "the eviction request has finished processing")
        return Expectation(("Active",), "this responder is next in line")
    return Expectation(("Inactive",), "the previously active has not finished processing")


def _validate_target(
    target: Object, path: Path, report: Object | None, expected: Expectation, progress: Progress
) -> list[FieldError]:
    name, state = target.get("name", ""), target.get("state", "")
    if report is None:
        why = f"{quote(name)} has to be tracked in {_RESPONDERS} first"
        return [invalid(path, _shown([target])[0], why)]
    errs = _validate_priority(name, target.get("priority"), path.child("priority"))
    where = path.child("state")
    if state not in expected.states:
        why = f"must be one of: {', '.join(expected.states)}, because {expected.why}"
        return [*errs, invalid(where, state, why)]
    ended, started = report.get("completionTime"), report.get("startTime")
    if state != "Active" and started and not ended and not progress.final:
        heard = parse_time(report.get("heartbeatTime") or started).seconds
        if parse_time(progress.now).seconds < heard + _HEARTBEAT_SECONDS - _SKEW_SECONDS:
            beat, end = _RESPONDERS.child("heartbeatTime"), _RESPONDERS.child("completionTime")
            why = f"must stay Active because the responder is in progress and it should report {beat} or {end}"
            errs.append(forbidden(where, why))
    if state == "Completed" and not ended:
        end = _RESPONDERS.child("completionTime")
        errs.append(invalid(where, state, f"cannot become Completed because the responder didn't report {end}"))
    return errs


def _validate_priority(name: str, priority: int | None, path: Path) -> list[FieldError]:
    if priority is None or priority < 0:
        return []
    assigned = _ASSIGNED.get(name)
    if assigned is not None:
        why = f"core k8s responder is expected to have priority: {assigned}"
        return [] if priority == assigned else [invalid(path, priority, why)]
    if priority >= _RESERVED_BELOW:
        return []
    return [invalid(path, priority, "priorities 0-999 are reserved for responders with *.k8s.io suffix")]


def _shown(targets: list[Object]) -> Any:
    return internal_form("lifecycle.v1alpha1.TargetResponder", targets)


def _validate_reports(reports: list[Object], old: list[Object], targets: list[Object], now: str) -> list[FieldError]:
    shown = internal_form("lifecycle.v1alpha1.ResponderStatus", reports) or None
    if len(reports) != len(targets):
        why = "must be the same length as status.targetResponders and contain the same keys"
        return [invalid(_RESPONDERS, shown, why)]
    names = {report.get("name", "") for report in reports}
    states = {target.get("name", ""): target.get("state", "") for target in targets}
    if not states.keys() <= names:
        return [invalid(_RESPONDERS, shown, "must contain the same keys as status.targetResponders")]
    if len(reports) > LIMIT or len(names) < len(reports):
        return []
    before = {report.get("name", ""): report for report in old}
    errs: list[FieldError] = []
    for position, report in enumerate(reports):
        name, path = report.get("name", ""), _RESPONDERS.index(position)
        if name in before and report != before[name] and states.get(name) != "Active":
            errs.append(invalid(path, internal_form("lifecycle.v1alpha1.ResponderStatus", report), IMMUTABLE))
        else:
            errs += _Report(report, before.get(name) or {}, path, now).errors(states.get(name) == "Active")
    return errs


class _Report:
    """What one responder says, compared with what it said before."""

    def __init__(self, report: Object, old: Object, path: Path, now: str) -> None:
        self._report, self._old, self._path = report, old, path
        self._now = parse_time(now).seconds

    def errors(self, active: bool) -> list[FieldError]:
        return [*self._start(active), *self._heartbeat(), *self._expected(), *self._completion()]

    def _changed(self, name: str) -> bool:
        return bool(self._report.get(name) != self._old.get(name))

    def _is_present(self, text: str) -> bool:
        return abs(parse_time(text).seconds - self._now) < _SKEW_SECONDS

    def _start(self, active: bool) -> list[FieldError]:
        start, path = self._report.get("startTime"), self._path.child("startTime")
        if self._old.get("startTime") and self._changed("startTime"):
            return []
        if not start:
            return [required(path, "is required for an active responder")] if active else []
        if self._changed("startTime") and not self._is_present(start):
            return [invalid(path, start, "must be set to the present time")]
        return []

    def _unstarted(self, name: str) -> list[FieldError]:
        """A time that is set before the start, or lies before it."""
        start, value, path = self._report.get("startTime"), self._report[name], self._path.child(name)
        if not start:
            return [invalid(path, value, f"cannot be set before {self._path.child('startTime')} is set")]
        if parse_time(value).seconds < parse_time(start).seconds:
            return [invalid(path, value, f"must occur after {self._path.child('startTime')}")]
        return []

    def _heartbeat(self) -> list[FieldError]:
        value, old, path = self._report.get("heartbeatTime"), self._old.get("heartbeatTime"), self._path
        path = path.child("heartbeatTime")
        if not value:
            return [required(path, "is required once set")] if old else []
        if not self._changed("heartbeatTime"):
            return []
        if self._report.get("startTime") and old and parse_time(value).seconds < parse_time(old).seconds:
            return [invalid(path, value, "cannot be decreased")]
        late = [] if self._is_present(value) else [invalid(path, value, "must be set to the present time")]
        return self._unstarted("heartbeatTime") or late

    def _expected(self) -> list[FieldError]:
        value, path = self._report.get("expectedCompletionTime"), self._path.child("expectedCompletionTime")
        if not value or not self._changed("expectedCompletionTime"):
            return []
        if errs := self._unstarted("expectedCompletionTime"):
            return errs
        if parse_time(value).seconds < self._now - _SKEW_SECONDS:
            return [invalid(path, value, "cannot be set to the past time")]
        if parse_time(value).seconds > self._now + _LONGEST_SECONDS:
            return [invalid(path, value, "must complete within 10 years")]
        return []

    def _completion(self) -> list[FieldError]:
        value, path = self._report.get("completionTime"), self._path.child("completionTime")
        if not value or (self._old.get("completionTime") and self._changed("completionTime")):
            return []
        late = self._changed("completionTime") and not self._is_present(value)
        wrong = [invalid(path, value, "must be set to the present time")] if late else []
        return self._unstarted("completionTime") or wrong
