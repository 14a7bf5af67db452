"""Disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pilothouse.apis.apps.amounts import validate_amount, validate_not_above_all
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules, UpdateRules
from pilothouse.apis.validation import non_negative, one_of
from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.objects import Object

_SPEC = Path("spec")
_STATUS = Path("status")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_EMPTY_MATCH = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_MATCH_NONE = {"matchExpressions": [{"key": _EMPTY_MATCH, "operator": "Exists"}]}


def validate_budget(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a disruption budget's spec; an update may keep selector values that were wrong before."""
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
    """Errors of what the disruption controller reports."""
    status = obj.get("status") or {}
    errs: list[FieldError] = []
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), errs)
    for name in _COUNTS:
        non_negative(status.get(name, 0), _STATUS, name, errs)
    return errs


class BudgetStatusStrategy(StatusStrategy):
    """What the disruption controller reports."""

    metadata_rules = MetadataRules(standard_finalizers=False)
    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_budget_status(obj)


def _amount(name: str) -> Any:
    def cell(obj: Object) -> str:
        value = obj["spec"].get(name)
        return "N/A" if value is None else str(value)

    return cell


class BudgetStrategy(StatusKeeper):
    """Disruption budgets. Old markers of an empty selector are taken out of selectors that hold more than them."""

    type_name = "policy.v1.PodDisruptionBudget"
    validate_name = staticmethod(name_is_path_segment)
    metadata_rules = MetadataRules(standard_finalizers=False, judged_last=True)
    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": BudgetStatusStrategy}
    columns = (
        NAME,
        Column(
            "Min Available",
            "string",
            _amount("minAvailable"),
            description="The minimum number of pods that must be available.",
        ),
        Column(
            "Max Unavailable",
            "string",
            _amount("maxUnavailable"),
            description="The maximum number of pods that may be unavailable.",
        ),
        Column(
            "Allowed Disruptions",
            "integer",
            lambda o: (o.get("status") or {}).get("disruptionsAllowed", 0),
            description="Calculated number of pods that may be disrupted at this time.",
        ),
        AGE,
    )

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_for_create(ctx, obj)
        _strip_marker(obj["spec"].get("selector"))

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        if obj["spec"].get("selector") != old["spec"].get("selector"):
            _strip_marker(obj["spec"].get("selector"))

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_budget(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_budget(obj, old)


def _strip_marker(selector: Object | None) -> None:
    if not selector or selector == _MATCH_NONE or not selector.get("matchExpressions"):
        return
    kept = [expression for expression in selector["matchExpressions"] if expression.get("key") != _EMPTY_MATCH]
    if kept:
        selector["matchExpressions"] = kept
    else:
        del selector["matchExpressions"]
