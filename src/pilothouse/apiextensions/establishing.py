"""Conditions that follow from a definition alone: it is established, its schema is structural, its group is approved."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from pilothouse.apis.apiextensions.definitions import (
    API_APPROVED,
    APPROVED_ANNOTATION,
    ESTABLISHED,
    NAMES_ACCEPTED,
    condition,
    is_true,
    remove_condition,
    set_condition,
)
from pilothouse.machinery.go_quote import quote

Object = dict[str, Any]
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def establish(crd: Object, now: str) -> bool:
    """Establish a definition whose names are accepted; whether that changed anything."""
    if crd["metadata"].get("deletionTimestamp") or not is_true(crd, NAMES_ACCEPTED) or is_true(crd, ESTABLISHED):
        return False
    message = "the initial names have been accepted"
    new = {"type": ESTABLISHED, "status": "True", "reason": "InitialNamesAccepted", "message": message}
    set_condition(crd, new, now)
    return True


def is_protected(group: str) -> bool:
    """Whether a group belongs to the community, so that its APIs need approval."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_of(annotations: dict[str, str] | None) -> tuple[str, str]:
    """The reason of the approval condition, and its message."""
    text = (annotations or {}).get(APPROVED_ANNOTATION, "")
    if not text:
        return "MissingAnnotation", f"protected groups must have approval annotation {quote(APPROVED_ANNOTATION)}, {_SEE}"
    if text.startswith("unapproved"):
        return "UnapprovedAnnotation", f"not approved: {quote(text)}"
    try:
        url = urlsplit(text)
        if url.scheme and url.hostname:
            return "ApprovedAnnotation", f"approved in {text}"
    except ValueError:
        pass
    why = f'with either a URL or a reason starting with "unapproved", {_SEE}'
    return "InvalidAnnotation", f"protected groups must have approval annotation {quote(APPROVED_ANNOTATION)} {why}"


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
