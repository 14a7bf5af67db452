"""Whether a toleration of a pod covers a taint of a node."""

from __future__ import annotations

from pilothouse.machinery.objects import Object


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether a toleration covers a taint."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint["effect"]:
        return False
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    own, other = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return bool(own == other)
    try:
        return int(other) < int(own) if operator == "Lt" else int(other) > int(own)
    except ValueError:
        return False
