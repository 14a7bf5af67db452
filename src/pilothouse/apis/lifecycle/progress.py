"""How far an eviction or a request for one is, and who may write that."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.status import ResettingStatusStrategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required, too_many
from pilothouse.machinery.objects import Object

_STATUS: Final = Path("status")
_LONG_LIST: Final = 100
_CLEARED: Final = "field cannot be cleared once set"


def state_cell(obj: Object) -> str:
    """The last condition that says how it ended, or whether anybody has begun."""
    status = obj.get("status") or {}
    state = "Progressing" if (status.get("observedGeneration") or 0) > 0 else "Pending"
    conditions = {each.get("type"): each for each in reversed(status.get("conditions") or [])}
    for name in ("Failed", "TargetEvicted"):
        if conditions.get(name, {}).get("status") == "True":
            state = f"{name} ({conditions[name].get('reason', '')})"
    return state


def check_choice(value: str, choices: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    """A value is needed, and there are only these."""
    if not value:
        errs.append(required(path))
    elif value not in choices:
        errs.append(not_supported(path, value, choices))


def declare_progress(status: Object, old: Object, errs: ErrorList) -> None:
    """Conditions are few; the observed generation only grows."""
    conditions = status.get("conditions") or ()
    if len(conditions) > _LONG_LIST and conditions != old.get("conditions"):
        errs.declared.append(too_many(_STATUS.child("conditions"), len(conditions), _LONG_LIST))
    value, before = status.get("observedGeneration"), old.get("observedGeneration")
    path = _STATUS.child("observedGeneration")
    if value == before:
        return
    if value is None:
        errs.declared.append(invalid(path, None, _CLEARED))
        return
    if value < 1:
        errs.declared.append(invalid(path, value, "must be greater than or equal to 1"))
    if before is not None and value < before:
        errs.declared.append(invalid(path, value, f"may not be decreased from {before}"))


class ProgressStrategy(ResettingStatusStrategy):
    """Writes through ``/status``, which must name the version they build on."""

    update_rules = UpdateRules(allow_unconditional=False)
    reset_fields = ("spec", "metadata")
