"""What the conditions of a signing request say."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Object


def conditions_of(request: Object) -> list[dict[str, Any]]:
    """All conditions."""
    return (request.get("status") or {}).get("conditions") or []


def has(request: Object, type: str) -> bool:
    """Whether there is a condition of a type."""
    return any(each["type"] == type for each in conditions_of(request))


def is_issued(request: Object) -> bool:
    """Whether there is a certificate."""
    return bool((request.get("status") or {}).get("certificate"))


def is_approved(request: Object) -> bool:
    """Whether a request was approved, and not denied."""
    return has(request, "Approved") and not has(request, "Denied")
