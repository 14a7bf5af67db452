"""Workloads: templates of the groups of pods in them. All rules are declared ones; most fields never change."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.scheduling.pod_group import validate_group_fields
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, required, too_many
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_TEMPLATES_LIMIT: Final = 8


def validate_workload(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a workload: its templates stay the same ones."""
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
        validate_group_fields(template, had.get(name), where, errs, "minCount")
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


class WorkloadStrategy(Strategy):
    """Workloads."""

    update_rules = UpdateRules(allow_unconditional=False)
    columns = (NAME, AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_workload(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_workload(obj, old)
