"""Networking kinds through networking.k8s.io/v1beta1."""

from __future__ import annotations

from pilothouse.apis.legacy.ingresses import INGRESSES
from pilothouse.apis.legacy.older import Older
from pilothouse.apis.networking.ingress_class import IngressClassStrategy
from pilothouse.apis.strategy import Context
from pilothouse.machinery.field_errors import FieldError
from pilothouse.machinery.objects import Object


class UnscopedClasses(IngressClassStrategy):
    """Ingress classes."""

    def default(self, obj: Object) -> None:
        """Parameters came without a scope."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _without_scope(obj, super().validate(ctx, obj))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return _without_scope(obj, super().validate_update(ctx, obj, old))


def _without_scope(obj: Object, errs: list[FieldError]) -> list[FieldError]:
    if ((obj.get("spec") or {}).get("parameters") or {}).get("scope") is not None:
        return errs
    return [error for error in errs if error.field != "spec.parameters.scope"]


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "ingressclasses"): Older(strategy=UnscopedClasses),
    ("v1beta1", "ingresses"): INGRESSES,
}
