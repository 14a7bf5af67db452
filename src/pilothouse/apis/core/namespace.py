"""Namespaces: their phase, their own finalizers and the label with their name.

A namespace goes in three steps, each a write:

    DELETE             sets deletionTimestamp and phase Terminating while spec.finalizers is not empty
    /finalize          a controller that has emptied the namespace takes its name out of spec.finalizers
    DELETE, /finalize  with spec.finalizers empty the object itself is removed
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.checks import refusals
from pilothouse.apis.metadata import DELETE_DEPENDENTS, ORPHAN_DEPENDENTS
from pilothouse.apis.object_names import name_is_dns_label
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.strategy_rules import DeletionRules, MetadataRules
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Named, Path, invalid
from pilothouse.machinery.objects import Object

NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
ACTIVE: Final = "Active"
TERMINATING: Final = "Terminating"
_STANDARD: Final = frozenset({FINALIZER, ORPHAN_DEPENDENTS, DELETE_DEPENDENTS})
_FINALIZERS: Final = Path("spec", "finalizers")
_PHASE: Final = Path("status", "Phase")


def spec_finalizers(obj: Object) -> list[str]:
    """Who must still empty the namespace before it may go."""
    finalizers: list[str] = obj.get("spec", {}).get("finalizers") or []
    return finalizers


class NamespaceStrategy(Strategy):
    """The namespace itself. Finalizers in its spec change through ``/finalize`` only."""

    metadata_rules = MetadataRules(judges_prefix_on_update=True)
    validate_name = staticmethod(name_is_dns_label)
    field_labels = frozenset({"status.phase"})
    deletion_rules = DeletionRules(deletes_unread=False, returns_deleted=True)
    reset_fields = ("status",)
    columns = (
        NAME,
        Column("Status", "string", lambda obj: _phase(obj), description="The status of the namespace"),
        AGE,
    )

    def default(self, obj: Object) -> None:
        if obj["metadata"].get("name"):
            _set_name_label(obj["metadata"])
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = ACTIVE

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": ACTIVE}
        finalizers = spec_finalizers(obj)
        if FINALIZER not in finalizers:
            obj["spec"] = {**obj.get("spec", {}), "finalizers": [*finalizers, FINALIZER]}

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        _keep_finalizers(obj, old)
        obj["status"] = old.get("status", {})

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [err for name in spec_finalizers(obj) for err in check_finalizer(_FINALIZERS, name)]

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return self.validate(ctx, obj)

    def canonicalize(self, obj: Object) -> None:
        _set_name_label(obj["metadata"])

    def begin_deletion(self, ctx: Context, obj: Object) -> bool:
        obj["metadata"]["deletionTimestamp"] = ctx.now
        obj["status"] = {**obj.get("status", {}), "phase": TERMINATING}
        return True

    def is_held(self, obj: Object) -> bool:
        return bool(spec_finalizers(obj))

    def fields(self, obj: Object) -> dict[str, str]:
        return {"status.phase": _phase(obj)}

    def convert_field(self, name: str, value: str) -> tuple[str, str]:
        if name == "metadata.namespace":
            raise ValueError(f"field label not supported: {name}")
        return super().convert_field(name, value)


class NamespaceStatusStrategy(StatusStrategy):
    """``/status``: the phase must agree with whether the namespace is being deleted."""

    validate_name = staticmethod(name_is_dns_label)

    def default(self, obj: Object) -> None:
        NamespaceStrategy.default(NamespaceStrategy(), obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        phase = _phase(obj)
        if obj["metadata"].get("deletionTimestamp"):
            if phase != TERMINATING:
                return [invalid(_PHASE, Named(phase), "may only be 'Terminating' if `deletionTimestamp` is not empty")]
        elif phase != ACTIVE:
            return [invalid(_PHASE, Named(phase), "may only be 'Active' if `deletionTimestamp` is empty")]
        return []

    def canonicalize(self, obj: Object) -> None:
        _set_name_label(obj["metadata"])


class NamespaceFinalizeStrategy(Strategy):
    """``/finalize``: the only way to change ``spec.finalizers``."""

    validate_name = staticmethod(name_is_dns_label)
    reset_fields = ("status",)

    def default(self, obj: Object) -> None:
        NamespaceStrategy.default(NamespaceStrategy(), obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        obj["status"] = old.get("status", {})

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        finalizers = enumerate(spec_finalizers(obj))
        return [err for at, name in finalizers for err in check_finalizer(_FINALIZERS.index(at), name)]

    def canonicalize(self, obj: Object) -> None:
        _set_name_label(obj["metadata"])


NamespaceStrategy.subresources = {"status": NamespaceStatusStrategy, "finalize": NamespaceFinalizeStrategy}


def check_finalizer(path: Path, name: str) -> list[FieldError]:
    """A qualified name, or one of the few that go without a domain."""
    errs = refusals(path, name, names.check_label_key(name))
    if "/" not in name and name not in _STANDARD:
        why = "name is neither a standard finalizer name nor is it fully qualified"
        errs.append(invalid(path, name, why))
    return errs


def _phase(obj: Object) -> str:
    phase: str = obj.get("status", {}).get("phase", "")
    return phase


def _set_name_label(metadata: dict[str, Any]) -> None:
    if (metadata.get("labels") or {}).get(NAME_LABEL) != metadata["name"]:
        metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}


def _keep_finalizers(obj: Object, old: Object) -> None:
    spec = {key: value for key, value in obj.get("spec", {}).items() if key != "finalizers"}
    if spec_finalizers(old):
        spec["finalizers"] = spec_finalizers(old)
    obj["spec"] = spec
