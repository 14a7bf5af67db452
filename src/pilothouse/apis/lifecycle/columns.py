"""Columns of evictions and of requests for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME, age_of
from pilothouse.apis.strategy import Column, Doc, Object
from pilothouse.machinery import times

_REQUEST: Final = "lifecycle.v1alpha1.EvictionRequest"
_EVICTION: Final = "lifecycle.v1alpha1.Eviction"
_REPORT: Final = "lifecycle.v1alpha1.ResponderStatus"
_UNSET: Final = "<unset>"
_ENDED: Final = ("Canceled", "Interrupted", "Completed")


def _target(obj: Object) -> str:
    pod = (obj["spec"].get("target") or {}).get("pod")
    return _UNSET if pod is None else pod.get("name", "")


def _target_type(obj: Object) -> str:
    return _UNSET if (obj["spec"].get("target") or {}).get("pod") is None else "Pod"


def _state(obj: Object) -> str:
    status = obj.get("status") or {}
    state = "Progressing" if (status.get("observedGeneration") or 0) > 0 else "Pending"
    conditions = {each.get("type"): each for each in reversed(status.get("conditions") or [])}
    for name in ("Failed", "TargetEvicted"):
        if conditions.get(name, {}).get("status") == "True":
            state = f"{name} ({conditions[name].get('reason', '')})"
    return state


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


def _responder_status(obj: Object) -> str:
    target, report = _turn(obj)
    if target is None or not report:
        return _UNSET
    state: str = target.get("state", "")
    if state == "Active" and report.get("startTime"):
        return f"Started ({age_of(report['startTime'])} ago)"
    if state == "Completed" and report.get("completionTime"):
        return f"{state} ({age_of(report['completionTime'])} ago)"
    return state


def _expected(obj: Object) -> str:
    target, report = _turn(obj)
    if target is None or not report:
        return "<unknown>"
    if target.get("state") in _ENDED:
        return "-"
    wanted = report.get("expectedCompletionTime")
    if not report.get("startTime") or not wanted:
        return "<unknown>"
    left = times.parse_time(wanted).since(times.now_instant())
    return f"in {times.human_duration(left)}" if left > 0 else f"{age_of(wanted)} ago"


def _requesters(obj: Object) -> str:
    requesters = (obj.get("status") or {}).get("requesters") or ()
    names = sorted(each.get("name", "") for each in requesters if each.get("intent") != "Withdrawn")
    if not names:
        return "<withdrawn>" if requesters else "<none>"
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1} more..."


def _heartbeat(obj: Object) -> str:
    heard = _turn(obj)[1].get("heartbeatTime")
    return f"{age_of(heard)} ago" if heard else _UNSET


def _message(obj: Object) -> str:
    return (_turn(obj)[1].get("message") or "").strip() or _UNSET


def _of_spec(field: str) -> Callable[[Object], Any]:
    return lambda obj: obj["spec"].get(field, "")


REQUEST_COLUMNS: Final = (
    NAME,
    Column("Target", "string", _target, description=Doc(f"{_REQUEST}Spec", "target")),
    Column("Target Type", "string", _target_type, description=Doc(f"{_REQUEST}Spec", "target")),
    Column("Status", "string", _state, description=Doc(f"{_REQUEST}Status", "conditions")),
    Column("Requester", "string", _of_spec("requester"), description=Doc(f"{_REQUEST}Spec", "requester")),
    Column("Intent", "string", _of_spec("intent"), description=Doc(f"{_REQUEST}Spec", "intent")),
    AGE,
)
EVICTION_COLUMNS: Final = (
    NAME,
    Column("Target", "string", _target, description=Doc(f"{_EVICTION}Spec", "target")),
    Column("Target Type", "string", _target_type, description=Doc(f"{_EVICTION}Spec", "target")),
    Column("Status", "string", _state, description=Doc(f"{_EVICTION}Status", "conditions")),
    Column("Active Responder", "string", _active, description=Doc("lifecycle.v1alpha1.TargetResponder", "state")),
    Column("Responder Status", "string", _responder_status, description=Doc(_REPORT, "")),
    Column("Responder Expected Finish", "string", _expected, description=Doc(_REPORT, "expectedCompletionTime")),
    Column("Requesters", "string", _requesters, description=Doc(f"{_EVICTION}Status", "requesters")),
    AGE,
    Column("Responder Heartbeat", "string", _heartbeat, priority=1, description=Doc(_REPORT, "heartbeatTime")),
    Column("Responder Status Message", "string", _message, priority=1, description=Doc(_REPORT, "message")),
)
