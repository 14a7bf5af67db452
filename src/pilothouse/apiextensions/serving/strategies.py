"""The rules of custom resources: all that the schema demands, generations, and a status of its own if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apis.apiextensions.rules import Rules
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.strategy import Context, Object, Strategy
from pilothouse.machinery import errors, names
from pilothouse.machinery.field_errors import (
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TYPE_INVALID,
    FieldError,
    Path,
    invalid,
)
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupVersionKind

_BLOCKING: Final = frozenset({NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID})
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)

ScaleFaults = Callable[[Object, bool], list[FieldError]]
"""Faults of the fields a scale is made of: (object, only those of its status)."""
Fields = Callable[[Object], dict[str, str]]


class CustomStrategy(Strategy):
    """A custom resource at one version, without a status subresource. Odd finalizers are worth a warning only."""

    standard_finalizers = False
    repeats_faults = True
    generation = True
    any_value = True
    allow_unconditional_update = False
    status_field = ""
    keeps_status = False

    def __init__(
        self,
        kind: GroupVersionKind,
        schema: ObjectSchema,
        *,
        rules: Rules | None = None,
        scale_faults: ScaleFaults | None = None,
        fields: Fields | None = None,
        selectable: frozenset[str] = frozenset(),
        namespaced: bool = True,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.schema = schema
        self._rules = rules
        self._scale_faults = scale_faults
        self._fields = fields
        self._selectable = selectable
        self._namespaced = namespaced

    def default(self, obj: Object) -> None:
        self.schema.default(obj)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        self.check_kind(obj)
        if self.keeps_status:
            obj.pop("status", None)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        self.check_kind(obj)
        if self.keeps_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)

    def check_kind(self, obj: Object) -> None:
        """Refuse an object of another kind or version before anything else is said about it."""
        kind, version, wanted = obj.get("kind", ""), obj.get("apiVersion", ""), str(self.kind.group_version)
        errs: list[FieldError] = []
        if kind != self.kind.kind:
            errs.append(invalid(Path("kind"), kind, f"must be {self.kind.kind}"))
        if version != wanted:
            errs.append(invalid(Path("apiVersion"), version, f"must be {wanted}"))
        if errs:
            group = version.rpartition("/")[0]
            raise errors.invalid(GroupKind(group, kind), obj["metadata"].get("name", ""), errs)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self._faults(ctx, obj, None)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self._faults(ctx, obj, old)

    def _faults(self, ctx: Context, obj: Object, old: Object | None) -> list[FieldError]:
        schema = self.schema
        errs = schema.faults(obj, old)
        if self._scale_faults is not None:
            errs += self._scale_faults(obj, False)
        errs += schema.embedded_faults(obj)
        errs += schema.list_faults(obj, old)
        return self.check_rules(ctx, obj, old, errs)

    def check_rules(self, ctx: Context, obj: Object, old: Object | None, errs: list[FieldError]) -> list[FieldError]:
        """All faults: those found, and those of expression rules unless some of them made checking pointless."""
        if self._rules is None:
            return errs
        if any(error.type in _BLOCKING for error in errs):
            return [*errs, invalid(None, None, _UNCHECKED)]
        return errs + self._rules(obj, old, ctx.warnings)

    def status_faults(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        """Faults of a write through the status."""
        errs = self.schema.status_faults(obj, old)
        if self._scale_faults is not None:
            errs += self._scale_faults(obj, True)
        errs += self.schema.list_faults(obj, old)
        return self.check_rules(ctx, obj, old, errs)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return _finalizer_warnings(obj["metadata"].get("finalizers") or ())

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        before = old["metadata"].get("finalizers") or ()
        return _finalizer_warnings(set(obj["metadata"].get("finalizers") or ()).difference(before))

    def fields(self, obj: Object) -> dict[str, str]:
        return {} if self._fields is None else self._fields(obj)

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name == "metadata.name" or (name == "metadata.namespace" and self._namespaced) or name in self._selectable:
            return name, value
        raise ValueError(f"field label not supported: {name}")


class StatusfulStrategy(CustomStrategy):
    """A custom resource whose status is written through its own subresource only."""

    status_field = "status"
    keeps_status = True
    reset_fields = ("status",)


class CustomStatusStrategy(Strategy):
    """Writes through ``/status``: nothing but the status changes."""

    standard_finalizers = False
    repeats_faults = True
    allow_unconditional_update = False
    generation = False
    reset_fields = ("metadata", "spec")

    def __init__(self, main: CustomStrategy) -> None:
        super().__init__(main.gates)
        self._main = main

    def default(self, obj: Object) -> None:
        self._main.default(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        kept = {key: obj[key] for key in ("status",) if key in obj}
        managed = obj["metadata"].get("managedFields")
        obj.clear()
        obj.update(old)
        obj["metadata"] = metadata = dict(old["metadata"])
        if managed:
            metadata["managedFields"] = managed
        else:
            metadata.pop("managedFields", None)
        obj.pop("status", None)
        obj.update(kept)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self._main.status_faults(ctx, obj, old)


def _finalizer_warnings(finalizers: Any) -> list[str]:
    warnings: list[str] = []
    for name in sorted(set(finalizers)):
        start = f"metadata.finalizers: {quote(name)}: "
        warnings += (start + message for message in names.check_label_key(name))
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            warnings.append(
                f"{start}prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other "
                "finalizer writers"
            )
    return warnings
