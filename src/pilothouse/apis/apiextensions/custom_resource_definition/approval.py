"""Approval of definitions in the community's own groups, by annotation."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from pilothouse.apis.apiextensions.custom_resource_definition.definitions import APPROVED_ANNOTATION
from pilothouse.machinery.go_quote import quote

_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"


def is_protected(group: str) -> bool:
    """Whether a group belongs to the community, so that its APIs need approval."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval_of(annotations: dict[str, str] | None) -> tuple[str, str]:
    """The reason of the approval condition, and its message."""
    text = (annotations or {}).get(APPROVED_ANNOTATION, "")
    if not text:
        return (
            "MissingAnnotation",
            f"protected groups must have approval annotation {quote(APPROVED_ANNOTATION)}, {_SEE}",
        )
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
