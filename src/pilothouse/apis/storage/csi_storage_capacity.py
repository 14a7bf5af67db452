"""Capacities: how much storage of a class there is where."""

from __future__ import annotations

from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.deprecated_labels import selector_warnings
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.apis.storage.formats import ROOT
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import MetadataRules, UpdateRules
from pilothouse.apis.validation import non_negative_quantity, well_formed
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, invalid
from pilothouse.machinery.objects import Object


def validate_capacity(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a storage capacity: topology and class never change."""
    topology, name = obj.get("nodeTopology"), obj.get("storageClassName", "")
    lenient = old is not None and bool(labels.validate_object(old.get("nodeTopology"), ROOT))
    errs = labels.validate_object(topology, Path("nodeTopology"), allow_invalid_values=lenient)
    well_formed(name, names.check_dns1123_subdomain, ROOT, "storageClassName", errs)
    if obj.get("capacity") is not None:
        non_negative_quantity(obj["capacity"], Path("capacity"), errs)
    if old is not None:
        if topology != old.get("nodeTopology"):
            shown = internal_form("meta.v1.LabelSelector", topology)
            errs.append(invalid(Path("nodeTopology"), shown, IMMUTABLE))
        if name != old.get("storageClassName", ""):
            errs.append(invalid(Path("storageClassName"), name, IMMUTABLE))
    return errs


class CSIStorageCapacityStrategy(Strategy):
    """Storage capacities."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    update_rules = UpdateRules(allow_unconditional=False)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_capacity(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_capacity(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return selector_warnings(obj.get("nodeTopology"), "nodeTopology")

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return selector_warnings(obj.get("nodeTopology"), "nodeTopology")
