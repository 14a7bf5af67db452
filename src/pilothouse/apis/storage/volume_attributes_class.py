"""Volume attributes classes."""

from __future__ import annotations

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.storage.columns import doc
from pilothouse.apis.storage.formats import validate_parameters, well_formed_key
from pilothouse.apis.strategy import Column, Context, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, required
from pilothouse.machinery.objects import Object

ATTRIBUTES_CLASS_COLUMNS = (
    NAME,
    Column(
        "DriverName",
        "string",
        lambda o: o.get("driverName", ""),
        description=doc("VolumeAttributesClass", "driverName"),
    ),
    AGE,
)


def validate_attributes_class(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a volume attributes class: driver and parameters never change."""
    errs: list[FieldError] = []
    if old is not None:
        if obj.get("driverName") != old.get("driverName"):
            errs.append(forbidden(Path("driverName"), "updates to driverName are forbidden."))
        if obj.get("parameters") != old.get("parameters"):
            errs.append(forbidden(Path("parameters"), "updates to parameters are forbidden."))
    driver, parameters = obj.get("driverName", ""), obj.get("parameters") or {}
    if driver:
        well_formed_key(driver.lower(), Path("driverName"), errs)
    else:
        errs.append(required(Path("driverName")))
    validate_parameters(parameters, errs)
    if not parameters:
        errs.append(required(Path("parameters"), "must contain at least one key/value pair"))
    return errs


class VolumeAttributesClassStrategy(Strategy):
    """Volume attributes classes."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    deletion_rules = DeletionRules(returns_deleted=True)
    columns = ATTRIBUTES_CLASS_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_attributes_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_attributes_class(obj, old)
