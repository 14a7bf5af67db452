"""The rules of custom resources: all that the schema demands, generations, and a status of its own if there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.apiextensions.serving.additions import NO_HOOKS, KindHooks
from pilothouse.apis.apiextensions.custom_resource_definition.rules import Rules
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.strategy import Context, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, MetadataRules, UpdateRules
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
from pilothouse.machinery.objects import Object

_BLOCKING: Final = frozenset({NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID})
_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)

ScaleErrors = Callable[[Object, bool], list[FieldError]]
"""Errors of the fields a scale is made of: (object, only those of its status)."""
Fields = Callable[[Object], dict[str, str]]


class CustomStrategy(Strategy):
    """A custom resource at one version, without a status subresource. Odd finalizers are worth a warning only."""

    metadata_rules = MetadataRules(standard_finalizers=False, repeats_errors=True)
    generation_rules = GenerationRules(counted=True, any_value=True)
    update_rules = UpdateRules(allow_unconditional=False)
    status_field = ""
    keeps_status = False

    def __init__(
        self,
        kind: GroupVersionKind,
        schema: ObjectSchema,
        *,
        rules: Rules | None = None,
        scale_errors: ScaleErrors | None = None,
        fields: Fields | None = None,
        selectable: frozenset[str] = frozenset(),
        namespaced: bool = True,
        gates: frozenset[str] | None = None,
        hooks: KindHooks = NO_HOOKS,
    ) -> None:
        super().__init__(gates)
        self._hooks = hooks
        self.kind = kind
        self._version = str(kind.group_version)
        self.schema = schema
        self._rules = rules
        self._scale_errors = scale_errors
        self._fields = fields
        self._selectable = selectable
        self._namespaced = namespaced

    def default(self, obj: Object) -> None:
        self.schema.default(obj)
        if self._is_hooked(obj):
            self._hooks.default(obj)

    def _is_hooked(self, obj: Object) -> bool:
        """Whether hooks may see the object: what does not fit the schema is refused without them."""
        return self._hooks is not NO_HOOKS and not self.schema.errors(obj, None)

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        self._check_kind(ctx, obj, None)
        if self.keeps_status:
            obj.pop("status", None)
        if self._is_hooked(obj):
            self._hooks.prepare_for_create(ctx, obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        self._check_kind(ctx, obj, old)
        if self.keeps_status:
            if "status" in old:
                obj["status"] = old["status"]
            else:
                obj.pop("status", None)
        if self._is_hooked(obj):
            self._hooks.prepare_for_update(ctx, obj, old)

    def _check_kind(self, ctx: Context, obj: Object, old: Object | None) -> None:
        """Refuse an object of another kind or version: its values do not matter then, what is embedded and rules do."""
        kind, version, wanted = obj.get("kind", ""), obj.get("apiVersion", ""), self._version
        errs: list[FieldError] = []
        if kind != self.kind.kind:
            errs.append(invalid(Path("kind"), kind, f"must be {self.kind.kind}"))
        if version != wanted:
            errs.append(invalid(Path("apiVersion"), version, f"must be {wanted}"))
        if errs:
            group = version.rpartition("/")[0]
            errs = self._structural_errors(ctx, obj, old, errs)
            raise errors.invalid(GroupKind(group, kind), obj["metadata"].get("name", ""), errs)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return self._errors(ctx, obj, None) or self._hooks.validate(ctx, obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self._errors(ctx, obj, old) or self._hooks.validate_update(ctx, obj, old)

    def _errors(self, ctx: Context, obj: Object, old: Object | None) -> list[FieldError]:
        schema = self.schema
        errs = schema.errors(obj, old)
        if self._scale_errors is not None:
            errs += self._scale_errors(obj, False)
        return self._structural_errors(ctx, obj, old, errs)

    def _structural_errors(
        self, ctx: Context, obj: Object, old: Object | None, errs: list[FieldError]
    ) -> list[FieldError]:
        """All errors: those found, and those that the structure of the schema tells whatever was found."""
        errs = errs + self.schema.embedded_errors(obj) + self.schema.list_errors(obj, old)
        return self.check_rules(ctx, obj, old, errs)

    def check_rules(self, ctx: Context, obj: Object, old: Object | None, errs: list[FieldError]) -> list[FieldError]:
        """All errors: those found, and those of expression rules unless some of them made checking pointless."""
        if self._rules is None:
            return errs
        if any(error.type in _BLOCKING for error in (*ctx.metadata_errors, *errs)):
            return [*errs, invalid(None, None, _UNCHECKED)]
        return errs + self._rules(obj, old, ctx.warnings)

    def status_errors(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        """Errors of a write through the status."""
        errs = self.schema.status_errors(obj, old)
        if self._scale_errors is not None:
            errs += self._scale_errors(obj, True)
        errs += self.schema.list_errors(obj, old)
        return self.check_rules(ctx, obj, old, errs) or self._hooks.validate_status_update(ctx, obj, old)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return _finalizer_warnings(obj["metadata"].get("finalizers") or ()) + self._hooks.warnings_on_create(ctx, obj)

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        before = old["metadata"].get("finalizers") or ()
        added = set(obj["metadata"].get("finalizers") or ()).difference(before)
        return _finalizer_warnings(added) + self._hooks.warnings_on_update(ctx, obj, old)

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

    metadata_rules = MetadataRules(standard_finalizers=False, repeats_errors=True)
    update_rules = UpdateRules(allow_unconditional=False)
    generation_rules = GenerationRules()
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
        return self._main.status_errors(ctx, obj, old)


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
