"""Runtime classes through node.k8s.io/v1alpha1, which keeps everything in a spec."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.legacy.older import Older
from pilothouse.apis.node.runtime_class import RuntimeClassStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object

_MOVED: Final = ("overhead", "scheduling")


def from_v1alpha1(obj: Object) -> Object:
    """As v1 has it."""
    spec = obj["spec"]
    moved = {name: spec[name] for name in _MOVED if name in spec}
    return {"metadata": obj["metadata"], "handler": spec.get("runtimeHandler", ""), **moved}


def to_v1alpha1(obj: Object) -> Object:
    """As v1alpha1 has it."""
    moved = {name: obj[name] for name in _MOVED if name in obj}
    return {"metadata": obj["metadata"], "spec": {"runtimeHandler": obj.get("handler", ""), **moved}}


class SpecifiedClasses(RuntimeClassStrategy):
    """Runtime classes whose errors name the handler where this version has it."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [_moved(error) for error in super().validate(ctx, obj)]

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return [_moved(error) for error in super().validate_update(ctx, obj, old)]


def _moved(error: FieldError) -> FieldError:
    if error.field != "handler":
        return error
    return FieldError(error.type, "spec.runtimeHandler", error.value, error.detail)


OLDER: dict[tuple[str, str], Older] = {
    ("v1alpha1", "runtimeclasses"): Older(from_v1alpha1, to_v1alpha1, strategy=SpecifiedClasses)
}
