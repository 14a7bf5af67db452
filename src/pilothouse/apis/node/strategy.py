"""Runtime classes: created by PUT too, never updated without a version."""

from __future__ import annotations

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.deprecated_labels import DEPRECATED
from pilothouse.apis.node.validation import validate_runtime_class
from pilothouse.apis.strategy import Column, Context, Object, Strategy
from pilothouse.machinery.field_errors import FieldError


class RuntimeClassStrategy(Strategy):
    """Runtime classes."""

    judges_prefix_on_update = True
    standard_finalizers = False
    allow_create_on_update = True
    allow_unconditional_update = False
    columns = (NAME, Column("Handler", "string", lambda o: o.get("handler", "")), AGE)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_runtime_class(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_runtime_class(obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        selector = (obj.get("scheduling") or {}).get("nodeSelector") or ()
        return [f"scheduling.nodeSelector: {DEPRECATED[key]}" for key in selector if key in DEPRECATED]

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return self.warnings_on_create(ctx, obj)


STRATEGIES: dict[str, type[Strategy]] = {"runtimeclasses": RuntimeClassStrategy}
