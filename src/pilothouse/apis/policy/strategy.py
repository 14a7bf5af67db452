"""Disruption budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.object_names import name_is_path_segment
from pilothouse.apis.policy.validation import validate_budget, validate_budget_status
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Object, StatusStrategy, Strategy
from pilothouse.machinery.field_errors import FieldError

_EMPTY_MATCH = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_MATCH_NONE = {"matchExpressions": [{"key": _EMPTY_MATCH, "operator": "Exists"}]}


class BudgetStatusStrategy(StatusStrategy):
    """What the disruption controller reports."""

    standard_finalizers = False
    allow_unconditional_update = False

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
    standard_finalizers = False
    metadata_last = True
    generation = True
    allow_unconditional_update = False
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


STRATEGIES: dict[str, type[Strategy]] = {"poddisruptionbudgets": BudgetStrategy}
