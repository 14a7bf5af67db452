"""Rules that taint devices wherever they are published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.ages import Age, age_of
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.resource.formats import check_driver, check_label, check_pool
from pilothouse.apis.resource.resource_slice.validation import validate_taint
from pilothouse.apis.resource.taints import stamp_taints
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, too_many
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_CONDITIONS_LIMIT: Final = 8


class TaintRuleStatusStrategy(ResettingStatusStrategy):
    """How far a rule's evictions are."""

    update_rules = UpdateRules(allow_unconditional=False)

    def default(self, obj: Object) -> None:
        stamp_taints([obj["spec"]["taint"]])

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        conditions, path = (obj.get("status") or {}).get("conditions") or (), Path("status", "conditions")
        validate_conditions(conditions, path, errs)
        if len(conditions) > _CONDITIONS_LIMIT:
            errs.append(too_many(path, len(conditions), _CONDITIONS_LIMIT))
        return errs


def _taint(name: str) -> Any:
    def cell(obj: Object) -> Any:
        return obj["spec"]["taint"].get(name, "")

    return cell


def _added(obj: Object) -> Age | str:
    added = obj["spec"]["taint"].get("timeAdded")
    return age_of(added) if added else ""


class TaintRuleStrategy(StatusKeeper):
    """Rules that taint devices. A changed effect counts from now on."""

    type_name = "resource.v1.DeviceTaintRule"
    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": TaintRuleStatusStrategy}
    columns = (
        NAME,
        Column("Key", "string", _taint("key"), description=Doc("resource.v1.DeviceTaint", "key")),
        Column("Value", "string", _taint("value"), description=Doc("resource.v1.DeviceTaint", "value")),
        Column("Effect", "string", _taint("effect"), description=Doc("resource.v1.DeviceTaint", "effect")),
        Column("TimeAdded", "string", _added, description=Doc("resource.v1.DeviceTaint", "timeAdded")),
        AGE,
    )

    def default(self, obj: Object) -> None:
        stamp_taints([obj["spec"]["taint"]])

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        taint, before = obj["spec"]["taint"], old["spec"]["taint"]
        if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
            taint["timeAdded"] = ctx.now

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _taint_errors(obj["spec"], None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _taint_errors(obj["spec"], old["spec"])


def _taint_errors(spec: Object, old: Object | None) -> list[FieldError]:
    errs = ErrorList()
    selector, where = spec.get("deviceSelector") or {}, _SPEC.child("deviceSelector")
    for name, check in (("driver", check_driver), ("pool", check_pool), ("device", check_label)):
        if selector.get(name) is not None:
            check(selector[name], where.child(name), errs.errors)
    validate_taint(spec["taint"], _SPEC.child("taint"), errs, old["taint"] if old is not None else None)
    return errs.listed()
