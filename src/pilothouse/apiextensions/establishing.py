"""Conditions that follow from a definition alone: it is established, and approved if its group needs that."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.apiextensions.approval import approval_of, is_protected
from pilothouse.apis.apiextensions.definitions import (
    API_APPROVED,
    ESTABLISHED,
    NAMES_ACCEPTED,
    condition,
    is_true,
    remove_condition,
    set_condition,
)

Object = dict[str, Any]


def establish(crd: Object, now: str) -> bool:
    """Establish a definition whose names are accepted; whether that changed anything."""
    if crd["metadata"].get("deletionTimestamp") or not is_true(crd, NAMES_ACCEPTED) or is_true(crd, ESTABLISHED):
        return False
    message = "the initial names have been accepted"
    new = {"type": ESTABLISHED, "status": "True", "reason": "InitialNamesAccepted", "message": message}
    set_condition(crd, new, now)
    return True


def set_approval(crd: Object, now: str) -> bool:
    """Set the approval condition of a definition in a protected group; whether that changed anything."""
    known = condition(crd, API_APPROVED)
    if not is_protected(crd["spec"]["group"]):
        if known is not None:
            remove_condition(crd, API_APPROVED)
        return known is not None
    reason, message = approval_of(crd["metadata"].get("annotations"))
    status = "True" if reason == "ApprovedAnnotation" else "False"
    new = {"type": API_APPROVED, "status": status, "reason": reason, "message": message}
    if known is not None and all(known.get(key) == value for key, value in new.items()):
        return False
    set_condition(crd, new, now)
    return True
