"""Validation of ``metav1.Condition`` lists, as the newer kinds' statuses hold them."""

from __future__ import annotations

import re
from typing import Any, Final

from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, not_supported, required, too_long

REASON_LIMIT: Final = 1024
MESSAGE_LIMIT: Final = 32 * 1024
STATUSES: Final = ("False", "True", "Unknown")
_REASON_PATTERN: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON: Final = re.compile(_REASON_PATTERN)
_REASON_MESSAGE: Final = names.pattern_message(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON_PATTERN,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def check_condition_reason(reason: str) -> list[str]:
    """Whether a reason has the form that conditions' reasons have; its length is not looked at."""
    return [] if _REASON.fullmatch(reason) else [_REASON_MESSAGE]


def validate_conditions(conditions: Any, path: Path, errs: list[FieldError]) -> None:
    """Errors of a status's conditions; ``path`` is the list's own."""
    seen: set[str] = set()
    for position, condition in enumerate(conditions or ()):
        named = condition.get("type", "")
        if named in seen:
            errs.append(duplicate(path.index(position), named))
        seen.add(named)
        validate_condition(condition, path.index(position), errs)


def validate_condition(condition: dict[str, Any], path: Path, errs: list[FieldError]) -> None:
    """Errors of one condition."""
    named, status, reason = condition.get("type", ""), condition.get("status", ""), condition.get("reason", "")
    if not named:
        errs.append(required(path.child("type"), "is required"))
    else:
        errs += (invalid(path.child("type"), named, message) for message in names.check_label_key(named))
    if not status:
        errs.append(required(path.child("status")))
    elif status not in STATUSES:
        errs.append(not_supported(path.child("status"), status, STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        errs.append(invalid(path.child("observedGeneration"), generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errs.append(required(path.child("lastTransitionTime")))
    if not reason:
        errs.append(required(path.child("reason")))
    else:
        errs += (invalid(path.child("reason"), reason, message) for message in check_condition_reason(reason))
        if len(reason.encode()) > REASON_LIMIT:
            errs.append(too_long(path.child("reason"), "", REASON_LIMIT))
    if len(condition.get("message", "").encode()) > MESSAGE_LIMIT:
        errs.append(too_long(path.child("message"), "", MESSAGE_LIMIT))
