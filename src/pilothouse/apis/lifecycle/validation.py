"""What evictions and requests for them must look like. Most of it is declared; the turns of responders are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.pod_spec.responders import validate_participant
from pilothouse.apis.faults import Faults
from pilothouse.apis.lifecycle.responders import LIMIT, Progress, validate_responders
from pilothouse.apis.resource.formats import check_uuid
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import (
    FieldError,
    Path,
    duplicate,
    invalid,
    not_supported,
    required,
    too_long_characters,
    too_many,
)

Object = dict[str, Any]
CheckItem = Callable[[Object, Object | None, Path, list[FieldError]], None]
_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_INTENTS: Final = ("Eviction", "Withdrawn")
_STATES: Final = ("Active", "Canceled", "Completed", "Inactive", "Interrupted")
_LONG_LIST: Final = 100
_MESSAGE_LIMIT: Final = 4000
_HIGHEST: Final = 100_000
_CLEARED: Final = "field cannot be cleared once set"
_MODIFIED: Final = "field cannot be modified once set"


def validate_eviction(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of an eviction's spec."""
    faults = Faults()
    _validate_target(obj["spec"], None if old is None else old["spec"], faults)
    return faults.listed()


def validate_eviction_request(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a request's spec."""
    faults, spec, before = Faults(), obj["spec"], None if old is None else old["spec"]
    _validate_target(spec, before, faults)
    requester, where = spec.get("requester", ""), _SPEC.child("requester")
    if before is None or faults.keep_declared(where, requester, before.get("requester", "")):
        if before is None:
            validate_participant(requester, where, faults.declared)
    elif not requester:
        faults.declared.append(required(where))
    intent = spec.get("intent", "")
    if before is None or intent != before.get("intent", ""):
        _check_choice(intent, _INTENTS, _SPEC.child("intent"), faults.declared)
    return faults.listed()


def _validate_target(spec: Object, old: Object | None, faults: Faults) -> None:
    target, path = spec.get("target") or {}, _SPEC.child("target")
    if old is not None:
        faults.keep_declared(path, target, old.get("target") or {})
        return
    pod = target.get("pod")
    if pod is None:
        faults.declared.append(invalid(path, "", "must specify one of: `pod`"))
        return
    name, uid, where = pod.get("name", ""), pod.get("uid", ""), path.child("pod")
    if not name:
        faults.declared.append(required(where.child("name")))
    faults.declared += (invalid(where.child("name"), name, m) for m in names.check_dns1123_subdomain(name) if name)
    if uid:
        check_uuid(uid, where.child("uid"), faults.declared)
    else:
        faults.declared.append(required(where.child("uid")))


def _check_choice(value: str, choices: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    if not value:
        errs.append(required(path))
    elif value not in choices:
        errs.append(not_supported(path, value, choices))


def validate_request_status(status: Object, old: Object) -> list[FieldError]:
    """Faults of the status of a request."""
    faults = Faults()
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), faults.errors)
    _declare_progress(status, old, faults)
    return faults.listed()


def validate_eviction_status(status: Object, old: Object, now: str) -> list[FieldError]:
    """Faults of the status of an eviction that is written at this time."""
    faults, path = Faults(), _STATUS.child("conditions")
    validate_conditions(status.get("conditions"), path, faults.errors)
    progress = _judge_conditions(status, old, now, path, faults.errors)
    faults.errors += validate_responders(status, old, progress)
    _declare_progress(status, old, faults)
    errs = faults.declared
    _declare_list("requesters", status, old, _LONG_LIST, _declare_requester, errs)
    _declare_list("targetResponders", status, old, LIMIT, _declare_target_responder, errs)
    _declare_list("responders", status, old, LIMIT, _declare_report, errs)
    return faults.listed()


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


def _declare_progress(status: Object, old: Object, faults: Faults) -> None:
    """Conditions are few; the observed generation only grows."""
    conditions = status.get("conditions") or ()
    if len(conditions) > _LONG_LIST and conditions != old.get("conditions"):
        faults.declared.append(too_many(_STATUS.child("conditions"), len(conditions), _LONG_LIST))
    value, before = status.get("observedGeneration"), old.get("observedGeneration")
    path = _STATUS.child("observedGeneration")
    if value == before:
        return
    if value is None:
        faults.declared.append(invalid(path, None, _CLEARED))
        return
    if value < 1:
        faults.declared.append(invalid(path, value, "must be greater than or equal to 1"))
    if before is not None and value < before:
        faults.declared.append(invalid(path, value, f"may not be decreased from {before}"))


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
        _check_choice(item.get("intent", ""), _INTENTS, path.child("intent"), errs)


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
        _check_choice(item.get("state", ""), _STATES, path.child("state"), errs)


def _declare_report(item: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    _declare_name(item, old, path, errs)
    for name in ("startTime", "completionTime"):
        value, before = item.get(name), (old or {}).get(name)
        if before is not None and value != before:
            errs.append(invalid(path.child(name), None, _CLEARED if value is None else _MODIFIED))
    message = item.get("message")
    if message is not None and len(message) > _MESSAGE_LIMIT and message != (old or {}).get("message"):
        errs.append(too_long_characters(path.child("message"), message, _MESSAGE_LIMIT))
