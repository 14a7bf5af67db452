"""Workloads and the groups of pods in them, scheduled together or not at all.

All rules are declared ones; most fields never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Object, Strategy
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, required, too_many

_SPEC: Final = Path("spec")
_HIGHEST: Final = 1_000_000_000
_TEMPLATES_LIMIT: Final = 8
_KEPT: Final = ("workloadRef", "disruptionMode", "priorityClassName", "priority")


def _validate_union(value: Object, members: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    given = [name for name in members if value.get(name) is not None]
    listed = ", ".join(f"`{name}`" for name in members)
    if not given:
        errs.append(invalid(path, "", f"must specify one of: {listed}"))
    elif len(given) > 1:
        errs.append(invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {listed}"))


def _validate_group(group: Object, old: Object | None, path: Path, errs: list[FieldError], count: str) -> None:
    """What groups and their templates share."""
    _validate_reference(group, old, path.child("workloadRef"), errs)
    _validate_policy(group.get("schedulingPolicy") or {}, old, path.child("schedulingPolicy"), errs, count)
    for name in _KEPT[1:]:
        if old is not None and group.get(name) != old.get(name):
            errs.append(invalid(path.child(name), None, IMMUTABLE))
        elif name == "disruptionMode" and group.get(name) is not None:
            _validate_union(group[name], ("single", "all"), path.child(name), errs)
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
        _validate_union(policy, ("basic", "gang"), path, errs)
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
    """Faults of a group of pods, or of a group of groups."""
    errs: list[FieldError] = []
    before = old["spec"] if old is not None else None
    _validate_group(obj["spec"], before, _SPEC, errs, count)
    if old is None and obj["spec"].get("disruptionMode") is None:
        errs.append(required(_SPEC.child("disruptionMode")))
    return errs


def validate_workload(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Faults of a workload: its templates stay the same ones."""
    errs: list[FieldError] = []
    spec, before = obj["spec"], old["spec"] if old is not None else None
    templates, path = spec.get("podGroupTemplates") or [], _SPEC.child("podGroupTemplates")
    priorities = {(t.get("priorityClassName", ""), t.get("priority")) for t in templates}
    if len(priorities) > 1:
        errs.append(invalid(_SPEC, None, "detected multiple priority configurations"))
    if not templates:
        why = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
        errs.append(invalid(_SPEC, "", why))
    _validate_controller(spec.get("controllerRef"), before, _SPEC.child("controllerRef"), errs)
    if len(templates) > _TEMPLATES_LIMIT:
        errs.append(too_many(path, len(templates), _TEMPLATES_LIMIT))
        return errs
    had = {t.get("name", ""): t for t in (before or {}).get("podGroupTemplates") or ()}
    if before is not None and _validate_same(templates, had, path, errs):
        return errs
    seen: set[str] = set()
    for position, template in enumerate(templates):
        where, name = path.index(position), template.get("name", "")
        if name in seen:
            errs.append(duplicate(where, template))
        seen.add(name)
        if not name:
            errs.append(required(where.child("name")))
        else:
            errs += (invalid(where.child("name"), name, message) for message in names.check_dns1123_label(name))
        _validate_group(template, had.get(name), where, errs, "minCount")
    return errs


def _validate_same(templates: list[Object], had: dict[str, Object], path: Path, errs: list[FieldError]) -> bool:
    known = {template.get("name", "") for template in templates}
    added = [at for at, template in enumerate(templates) if template.get("name", "") not in had]
    errs += (forbidden(path.index(at), "item may not be added") for at in added)
    removed = [name for name in had if name not in known]
    errs += (forbidden(path, "item may not be removed") for _ in removed)
    return bool(added or removed)


def _validate_controller(ref: Object | None, before: Object | None, path: Path, errs: list[FieldError]) -> None:
    if before is not None and ref != before.get("controllerRef"):
        errs.append(invalid(path, None, IMMUTABLE))
    elif ref is not None:
        group = ref.get("apiGroup", "")
        if group:
            errs += (invalid(path.child("apiGroup"), group, m) for m in names.check_dns1123_subdomain(group))
        for name in ("kind", "name"):
            if not ref.get(name):
                errs.append(required(path.child(name)))
            else:
                errs += (invalid(path.child(name), ref[name], m) for m in names.check_path_segment_name(ref[name]))


def default_group(spec: Object, gates: frozenset[str]) -> None:
    """Pods of a group go one at a time, and others go for them where groups may say so."""
    spec.setdefault("disruptionMode", {"single": {}})
    if "PodGroupPreemptionPolicy" in gates:
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


class GroupStatusStrategy(ResettingStatusStrategy):
    """What the scheduler reports about a group."""

    allow_unconditional_update = False

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
    allow_unconditional_update = False
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
    """Groups of groups."""

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


class WorkloadStrategy(Strategy):
    """Workloads."""

    allow_unconditional_update = False
    columns = (NAME, AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_workload(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_workload(obj, old)
