"""Groups of pods that are scheduled together or not at all. All rules are declared ones; most fields never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_HIGHEST: Final = 1_000_000_000
_KEPT: Final = ("workloadRef", "disruptionMode", "priorityClassName", "priority")


def validate_union(value: Object, members: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    """Exactly one of these members is set."""
    given = [name for name in members if value.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in members)
    if not given:
        errs.append(invalid(path, "", f"must specify one of: {listed}"))
    elif len(given) > 1:
        errs.append(invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {listed}"))


def validate_group_fields(group: Object, old: Object | None, path: Path, errs: list[FieldError], count: str) -> None:
    """What groups and their templates share."""
    _validate_reference(group, old, path.child("workloadRef"), errs)
    _validate_policy(group.get("schedulingPolicy") or {}, old, path.child("schedulingPolicy"), errs, count)
    for name in _KEPT[1:]:
        if old is not None and group.get(name) != old.get(name):
            errs.append(invalid(path.child(name), None, IMMUTABLE))
        elif name == "disruptionMode" and group.get(name) is not None:
            validate_union(group[name], ("single", "all"), path.child(name), errs)
        elif name == "priorityClassName" and group.get(name):
            errs += (invalid(path.child(name), group[name], m) for m in names.check_dns1123_subdomain(group[name]))
        elif name == "priority" and (group.get(name) or 0) > _HIGHEST:
            errs.append(invalid(path.child(name), group[name], f"must be less than or equal to {_HIGHEST}"))


def _validate_reference(group: Object, old: Object | None, path: Path, errs: list[FieldError]) -> None:
    ref = group.get("workloadRef")
    if old is not None and ref != old.get("workloadRef"):
        errs.append(invalid(path, None, IMMUTABLE))
    elif ref is not None:
        for name, check in (
            ("workloadName", names.check_dns1123_subdomain),
            ("templateName", names.check_dns1123_label),
        ):
            if not ref.get(name):
                errs.append(required(path.child(name)))
            else:
                errs += (invalid(path.child(name), ref[name], message) for message in check(ref[name]))


def _validate_policy(policy: Object, old: Object | None, path: Path, errs: list[FieldError], count: str) -> None:
    before = (old.get("schedulingPolicy") or {}) if old is not None else None
    if before is None or set(policy) != set(before):
        validate_union(policy, ("basic", "gang"), path, errs)
    if before is not None and policy.get("basic") != before.get("basic"):
        errs.append(invalid(path.child("basic"), None, IMMUTABLE))
    gang = policy.get("gang")
    if before is not None and (gang is None) != (before.get("gang") is None):
        why = "field cannot be cleared once set" if gang is None else "field cannot be set once created"
        errs.append(invalid(path.child("gang"), None, why))
    elif gang is not None:
        value = gang.get(count, 0)
        if not value:
            errs.append(required(path.child("gang", count)))
        elif value < 1:
            errs.append(invalid(path.child("gang", count), value, "must be greater than or equal to 1"))


def validate_group(obj: Object, old: Object | None, count: str) -> list[FieldError]:
    """Errors of a group of pods, or of a group of groups."""
    errs: list[FieldError] = []
    before = old["spec"] if old is not None else None
    validate_group_fields(obj["spec"], before, _SPEC, errs, count)
    if old is None and obj["spec"].get("disruptionMode") is None:
        errs.append(required(_SPEC.child("disruptionMode")))
    return errs


def default_group(spec: Object, gates: frozenset[str]) -> None:
    """Pods of a group go one at a time, and others go for them where groups may say so."""
    spec.setdefault("disruptionMode", {"single": {}})
    if "PodGroupPreemptionPolicy" in gates:
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


class GroupStatusStrategy(ResettingStatusStrategy):
    """What the scheduler reports about a group."""

    update_rules = UpdateRules(allow_unconditional=False)

    def default(self, obj: Object) -> None:
        default_group(obj["spec"], self.gates)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        if not old["spec"].get("resourceClaims"):
            (obj.get("status") or {}).pop("resourceClaimStatuses", None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs: list[FieldError] = []
        validate_conditions((obj.get("status") or {}).get("conditions"), Path("status", "conditions"), errs)
        return errs


def _policy(obj: Object) -> str:
    return "Gang" if (obj["spec"].get("schedulingPolicy") or {}).get("gang") is not None else "Basic"


def _workload(obj: Object) -> str:
    ref = obj["spec"].get("workloadRef")
    return "<none>" if ref is None else str(ref.get("workloadName", ""))


def _state(obj: Object) -> Any:
    conditions = {c.get("type"): c for c in (obj.get("status") or {}).get("conditions") or ()}
    if "DisruptionTarget" in conditions:
        return conditions["DisruptionTarget"].get("reason", "")
    scheduled = conditions.get("PodGroupInitiallyScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


class PodGroupStrategy(StatusKeeper):
    """Groups of pods."""

    type_name = "scheduling.v1beta1.PodGroup"
    count: ClassVar[str] = "minCount"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": GroupStatusStrategy}
    columns: ClassVar[tuple[Column, ...]] = (
        NAME,
        Column("Policy", "string", _policy, description=Doc("scheduling.v1beta1.PodGroupSpec", "schedulingPolicy")),
        Column("Workload", "string", _workload, description="Name of the referenced Workload object"),
        Column("Status", "string", _state, description="Status of the PodGroup"),
        AGE,
    )

    def default(self, obj: Object) -> None:
        default_group(obj["spec"], self.gates)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_group(obj, None, self.count)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_group(obj, old, self.count)


class CompositePodGroupStrategy(PodGroupStrategy):
    """Groups of groups, which are always made from a workload."""

    type_name = "scheduling.v1alpha3.CompositePodGroup"
    count = "minGroupCount"
    columns = (
        NAME,
        Column(
            "Policy",
            "string",
            _policy,
            description=Doc("scheduling.v1alpha3.CompositePodGroupSpec", "schedulingPolicy"),
        ),
        Column("Workload", "string", _workload, description="Name of the referenced Workload object"),
        AGE,
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        missing = [] if obj["spec"].get("workloadRef") is not None else [required(_SPEC.child("workloadRef"))]
        return [*missing, *super().validate(ctx, obj)]
