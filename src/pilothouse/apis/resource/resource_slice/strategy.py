"""Slices of a driver's pool of devices."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.resource.resource_slice.validation import validate_slice
from pilothouse.apis.resource.taints import stamp_taints
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, GenerationRules
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object

_FRACTIONS: Final = "DRAFractionalCapacityRange"
_SLICE_FIELDS: Final = {
    "spec.nodeName": ("nodeName",),
    "spec.driver": ("driver",),
    "spec.pool.name": ("pool", "name"),
}


class SliceStrategy(Strategy):
    """Resource slices."""

    deletion_rules = DeletionRules(returns_deleted=True)
    generation_rules = GenerationRules(counted=True, counts_gated=True)
    field_labels = frozenset(_SLICE_FIELDS)
    columns = (
        NAME,
        Column(
            "Node",
            "string",
            lambda o: o["spec"].get("nodeName", ""),
            description=Doc("resource.v1.ResourceSliceSpec", "nodeName"),
        ),
        Column(
            "Driver",
            "string",
            lambda o: o["spec"].get("driver", ""),
            description=Doc("resource.v1.ResourceSliceSpec", "driver"),
        ),
        Column(
            "Pool",
            "string",
            lambda o: (o["spec"].get("pool") or {}).get("name", ""),
            description=Doc("resource.v1.ResourcePool", "name"),
        ),
        AGE,
    )

    def fields(self, obj: Object) -> dict[str, str]:
        spec = obj["spec"]
        pool = (spec.get("pool") or {}).get("name", "")
        return {
            "spec.nodeName": spec.get("nodeName") or "",
            "spec.driver": spec.get("driver", ""),
            "spec.pool.name": pool,
        }

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name == "metadata.name" or name in self.field_labels:
            return name, value
        raise ValueError(f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}")

    def default(self, obj: Object) -> None:
        for device in obj["spec"].get("devices") or ():
            stamp_taints(device.get("taints"))

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_slice(obj, fractions=_FRACTIONS in self.gates)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_slice(obj, old, fractions=_FRACTIONS in self.gates)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {quote(driver)} contains uppercase characters"]

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)
