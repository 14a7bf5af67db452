"""What makes disruption budgets wrong."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.apps.amounts import validate_amount, validate_not_above_all
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.validating import non_negative, one_of
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, invalid

Object = dict[str, Any]
_SPEC = Path("spec")
_STATUS = Path("status")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def validate_budget(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a disruption budget's spec; an update may keep selector values that were wrong before."""
    spec = obj["spec"]
    errs: list[FieldError] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = internal_form("policy.v1.PodDisruptionBudgetSpec", spec)
        errs.append(invalid(_SPEC, shown, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            _validate_amount(spec[name], _SPEC, name, errs)
    lenient = old is not None and bool(labels.validate_object(old["spec"].get("selector"), _SPEC))
    selector = spec.get("selector")
    errs += labels.validate_object(selector, _SPEC.child("selector"), allow_invalid_values=lenient)
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None:
        one_of(policy, ("AlwaysAllow", "IfHealthyBudget"), _SPEC, "unhealthyPodEvictionPolicy", errs)
    return errs


def _validate_amount(value: int | str, path: Path, name: str, errs: list[FieldError]) -> None:
    validate_amount(value, path.child(name), errs)
    validate_not_above_all(value, path.child(name), errs)


def validate_budget_status(obj: Object) -> list[FieldError]:
    """Faults of what the disruption controller reports."""
    status = obj.get("status") or {}
    errs: list[FieldError] = []
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), errs)
    for name in _COUNTS:
        non_negative(status.get(name, 0), _STATUS, name, errs)
    return errs
