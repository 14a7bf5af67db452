"""Evictions of pods. What they are about never changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from pilothouse.apis.ages import Age, Due, age_of, due_at
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.lifecycle.progress import ProgressStrategy, check_choice, declare_progress, state_cell
from pilothouse.apis.lifecycle.responders import LIMIT, Progress, validate_responders
from pilothouse.apis.lifecycle.target import target_cell, target_type_cell, validate_target
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    invalid,
    required,
    too_long_characters,
    too_many,
)
from pilothouse.machinery.objects import Object

_EVICTION: Final = "lifecycle.v1alpha1.Eviction"
_REPORT: Final = "lifecycle.v1alpha1.ResponderStatus"
_UNSET: Final = "<unset>"
_ENDED: Final = ("Canceled", "Interrupted", "Completed")
_STATUS: Final = Path("status")
_INTENTS: Final = ("Eviction", "Withdrawn")
_STATES: Final = ("Active", "Canceled", "Completed", "Inactive", "Interrupted")
_LONG_LIST: Final = 100
_MESSAGE_LIMIT: Final = 4000
_HIGHEST: Final = 100_000
_CLEARED: Final = "field cannot be cleared once set"
_MODIFIED: Final = "field cannot be modified once set"


def _turn(obj: Object) -> tuple[Object | None, Object]:
    """The responder whose turn it is, or was last, and what it reports."""
    status = obj.get("status") or {}
    targets = status.get("targetResponders") or ()
    active = [target for target in targets if target.get("state") == "Active"]
    ended = [target for target in targets if target.get("state") in _ENDED]
    target = (active or ended or [None])[-1]
    if target is None:
        return None, {}
    reports = (each for each in status.get("responders") or () if each.get("name") == target.get("name"))
    return target, next(reports, {})


def _active(obj: Object) -> str:
    targets = (obj.get("status") or {}).get("targetResponders") or ()
    target, _ = _turn(obj)
    begun = sum(each.get("state") in ("Active", *_ENDED) for each in targets)
    return f"{_UNSET if target is None else target.get('name', '')} ({begun}/{len(targets)})"


def _responder_status(obj: Object) -> Age | str:
    target, report = _turn(obj)
    if target is None or not report:
        return _UNSET
    state: str = target.get("state", "")
    if state == "Active" and report.get("startTime"):
        return age_of(report["startTime"], "Started (", " ago)")
    if state == "Completed" and report.get("completionTime"):
        return age_of(report["completionTime"], f"{state} (", " ago)")
    return state


def _expected(obj: Object) -> Due | str:
    target, report = _turn(obj)
    if target is None or not report:
        return "<unknown>"
    if target.get("state") in _ENDED:
        return "-"
    wanted = report.get("expectedCompletionTime")
    if not report.get("startTime") or not wanted:
        return "<unknown>"
    return due_at(wanted)


def _requesters(obj: Object) -> str:
    requesters = (obj.get("status") or {}).get("requesters") or ()
    names = sorted(each.get("name", "") for each in requesters if each.get("intent") != "Withdrawn")
    if not names:
        return "<withdrawn>" if requesters else "<none>"
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1} more..."


def _heartbeat(obj: Object) -> Age | str:
    heard = _turn(obj)[1].get("heartbeatTime")
    return age_of(heard, after=" ago") if heard else _UNSET


def _message(obj: Object) -> str:
    return (_turn(obj)[1].get("message") or "").strip() or _UNSET


EVICTION_COLUMNS: Final = (
    NAME,
    Column("Target", "string", target_cell, description=Doc(f"{_EVICTION}Spec", "target")),
    Column("Target Type", "string", target_type_cell, description=Doc(f"{_EVICTION}Spec", "target")),
    Column("Status", "string", state_cell, description=Doc(f"{_EVICTION}Status", "conditions")),
    Column("Active Responder", "string", _active, description=Doc("lifecycle.v1alpha1.TargetResponder", "state")),
    Column("Responder Status", "string", _responder_status, description=Doc(_REPORT, "")),
    Column("Responder Expected Finish", "string", _expected, description=Doc(_REPORT, "expectedCompletionTime")),
    Column("Requesters", "string", _requesters, description=Doc(f"{_EVICTION}Status", "requesters")),
    AGE,
    Column("Responder Heartbeat", "string", _heartbeat, priority=1, description=Doc(_REPORT, "heartbeatTime")),
    Column("Responder Status Message", "string", _message, priority=1, description=Doc(_REPORT, "message")),
)


CheckItem = Callable[[Object, Object | None, Path, list[FieldError]], None]


def validate_eviction(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of an eviction's spec."""
    errs = ErrorList()
    validate_target(obj["spec"], None if old is None else old["spec"], errs)
    return errs.listed()


def validate_eviction_status(status: Object, old: Object, now: str) -> list[FieldError]:
    """Errors of the status of an eviction that is written at this time."""
    found, path = ErrorList(), _STATUS.child("conditions")
    validate_conditions(status.get("conditions"), path, found.errors)
    progress = _judge_conditions(status, old, now, path, found.errors)
    found.errors += validate_responders(status, old, progress)
    declare_progress(status, old, found)
    errs = found.declared
    _declare_list("requesters", status, old, _LONG_LIST, _declare_requester, errs)
    _declare_list("targetResponders", status, old, LIMIT, _declare_target_responder, errs)
    _declare_list("responders", status, old, LIMIT, _declare_report, errs)
    return found.listed()


def _judge_conditions(status: Object, old: Object, now: str, path: Path, errs: list[FieldError]) -> Progress:
    """What the conditions say; neither success nor failure is ever taken back."""
    conditions = {each.get("type", ""): each for each in reversed(status.get("conditions") or [])}
    is_true = {name: conditions.get(name, {}).get("status") == "True" for name in ("TargetEvicted", "Failed")}
    for before in old.get("conditions") or ():
        name = before.get("type", "")
        if name not in is_true or before.get("status") != "True":
            continue
        found = conditions.get(name)
        if found is None or found.get("status") == "False" or found.get("reason") != before.get("reason"):
            errs.append(invalid(path, status.get("conditions"), f"{name} condition status cannot be reverted"))
            is_true[name] = True
    return Progress(is_true["TargetEvicted"], is_true["Failed"], now)


def _declare_list(
    field: str, status: Object, old: Object, limit: int, declare: CheckItem, errs: list[FieldError]
) -> None:
    items, before, path = status.get(field) or [], old.get(field) or [], _STATUS.child(field)
    if items == before:
        return
    if len(items) > limit:
        errs.append(too_many(path, len(items), limit))
        return
    seen: set[str] = set()
    for position, item in enumerate(items):
        name = item.get("name", "")
        if name in seen:
            errs.append(duplicate(path.index(position), item))
        seen.add(name)
    known = {each.get("name", ""): each for each in before}
    for position, item in enumerate(items):
        was = known.get(item.get("name", ""))
        if item != was:
            declare(item, was, path.index(position), errs)


def _declare_name(item: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    name = item.get("name", "")
    if old is not None:
        return
    if name:
        errs += (invalid(path.child("name"), name, message) for message in names.check_prefixed_label_key(name))
    else:
        errs.append(required(path.child("name")))


def _declare_requester(item: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    _declare_name(item, old, path, errs)
    if old is None or item.get("intent") != old.get("intent"):
        check_choice(item.get("intent", ""), _INTENTS, path.child("intent"), errs)


def _declare_target_responder(item: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    _declare_name(item, old, path, errs)
    priority, before, where = item.get("priority"), (old or {}).get("priority"), path.child("priority")
    if old is None or priority != before:
        if priority is None:
            errs.append(required(where))
        if before is not None:
            errs.append(invalid(where, None, _CLEARED if priority is None else _MODIFIED))
        elif priority is not None and priority > _HIGHEST:
            errs.append(invalid(where, priority, f"must be less than or equal to {_HIGHEST}"))
        elif priority is not None and priority < 0:
            errs.append(invalid(where, priority, "must be greater than or equal to 0"))
    if old is None or item.get("state") != old.get("state"):
        check_choice(item.get("state", ""), _STATES, path.child("state"), errs)


def _declare_report(item: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    _declare_name(item, old, path, errs)
    for name in ("startTime", "completionTime"):
        value, before = item.get(name), (old or {}).get(name)
        if before is not None and value != before:
            errs.append(invalid(path.child(name), None, _CLEARED if value is None else _MODIFIED))
    message = item.get("message")
    if message is not None and len(message) > _MESSAGE_LIMIT and message != (old or {}).get("message"):
        errs.append(too_long_characters(path.child("message"), message, _MESSAGE_LIMIT))


class EvictionStatusStrategy(ProgressStrategy):
    """How far an eviction is; written by requesters, responders and the eviction's controller."""

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction_status(obj.get("status") or {}, old.get("status") or {}, ctx.now)


class EvictionStrategy(StatusKeeper):
    """Evictions."""

    type_name = "lifecycle.v1alpha1.Eviction"
    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    reset_fields = ("status",)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": EvictionStatusStrategy}
    columns = EVICTION_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_eviction(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction(obj, old)
