"""Storage version migrations: the spec never changes, and an outcome once reported stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import name_cell
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.status import ResettingStatusStrategy, StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_RESOURCE: Final = Path("spec", "resource")
_STATUS: Final = Path("status")


def validate_migration(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a migration."""
    errs: list[FieldError] = []
    target = obj["spec"].get("resource") or {}
    resource, group = target.get("resource", ""), target.get("group", "")
    if not resource:
        errs.append(required(_RESOURCE.child("resource"), "resource is required to be set"))
    elif messages := names.check_dns1035_label(resource):
        errs.append(invalid(_RESOURCE.child("resource"), resource, ",".join(messages)))
    if group and (messages := names.check_dns1123_subdomain(group)):
        errs.append(invalid(_RESOURCE.child("group"), group, ",".join(messages)))
    if old is not None and obj["spec"] != old["spec"]:
        shown = internal_form("storagemigration.v1.StorageVersionMigrationSpec", obj["spec"])
        errs.append(invalid(Path("spec"), shown, IMMUTABLE))
    return errs


def validate_progress(obj: Object, old: Object) -> list[FieldError]:
    """Errors of what the migrator reports."""
    errs: list[FieldError] = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    version, path = status.get("resourceVersion", ""), _STATUS.child("resourceVersion")
    if version and (error := _version_error(version)):
        errs.append(invalid(path, version, error))
    conditions = status.get("conditions")
    validate_conditions(conditions, _STATUS.child("conditions"), errs)
    if before.get("resourceVersion") and version != before["resourceVersion"]:
        errs.append(invalid(path, version, IMMUTABLE))
    where = _STATUS.child("conditions")
    if _is(status, "Succeeded") and _is(status, "Failed"):
        why = "Both success and failed conditions cannot be true at the same time"
        errs.append(invalid(where, conditions, why))
    for kind, said in (("Succeeded", "Success"), ("Failed", "Failed")):
        if _is(before, kind) and not _is(status, kind):
            errs.append(invalid(where, conditions, f"{said} condition cannot be set to false once it is true"))
    return errs


def _version_error(version: str) -> str:
    if version.isascii() and version.isdigit() and not version.startswith("0"):
        return ""
    return f"resource version is not well formed: {version}"


def _is(status: Object, kind: str) -> bool:
    found = (condition for condition in status.get("conditions") or () if condition.get("type") == kind)
    first: Object = next(found, {})
    return first.get("status") == "True"


class ProgressStrategy(ResettingStatusStrategy):
    """What the migrator reports."""

    update_rules = UpdateRules(allow_unconditional=False)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_progress(obj, old)


def _resource(obj: Object) -> str:
    target = obj["spec"].get("resource") or {}
    resource, group = target.get("resource", ""), target.get("group", "")
    return f"{resource}.{group}" if group else resource


def _state(obj: Object) -> Any:
    state = "Unknown"
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Running", "Failed", "Succeeded"):
            state = condition["type"]
    return state


class MigrationStrategy(StatusKeeper):
    """Storage version migrations."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    type_name = "storagemigration.v1.StorageVersionMigration"
    update_rules = UpdateRules(allow_unconditional=False)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ProgressStrategy}
    columns = (
        Column("Name", "string", name_cell, description=Doc("meta.v1.ObjectMeta", "name")),
        Column("Resource", "string", _resource, description="GroupResource to migrate"),
        Column("Status", "string", _state, description="Status of the migration"),
    )

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_migration(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_migration(obj, old)
