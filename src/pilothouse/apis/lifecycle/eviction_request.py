"""Requests for evictions; only their intent may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.core.pod_spec.responders import validate_participant
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.lifecycle.progress import ProgressStrategy, check_choice, declare_progress, state_cell
from pilothouse.apis.lifecycle.target import target_cell, target_type_cell, validate_target
from pilothouse.apis.status import StatusKeeper
from pilothouse.apis.strategy import Column, Context, Doc, Strategy
from pilothouse.apis.strategy_rules import GenerationRules, UpdateRules
from pilothouse.machinery.field_errors import FieldError, Path, required
from pilothouse.machinery.objects import Object

_REQUEST: Final = "lifecycle.v1alpha1.EvictionRequest"
_SPEC: Final = Path("spec")
_STATUS: Final = Path("status")
_INTENTS: Final = ("Eviction", "Withdrawn")


def _of_spec(field: str) -> Callable[[Object], Any]:
    return lambda obj: obj["spec"].get(field, "")


REQUEST_COLUMNS: Final = (
    NAME,
    Column("Target", "string", target_cell, description=Doc(f"{_REQUEST}Spec", "target")),
    Column("Target Type", "string", target_type_cell, description=Doc(f"{_REQUEST}Spec", "target")),
    Column("Status", "string", state_cell, description=Doc(f"{_REQUEST}Status", "conditions")),
    Column("Requester", "string", _of_spec("requester"), description=Doc(f"{_REQUEST}Spec", "requester")),
    Column("Intent", "string", _of_spec("intent"), description=Doc(f"{_REQUEST}Spec", "intent")),
    AGE,
)


def validate_eviction_request(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a request's spec."""
    errs, spec, before = ErrorList(), obj["spec"], None if old is None else old["spec"]
    validate_target(spec, before, errs)
    requester, where = spec.get("requester", ""), _SPEC.child("requester")
    if before is None or errs.keep_declared(where, requester, before.get("requester", "")):
        if before is None:
            validate_participant(requester, where, errs.declared)
    elif not requester:
        errs.declared.append(required(where))
    intent = spec.get("intent", "")
    if before is None or intent != before.get("intent", ""):
        check_choice(intent, _INTENTS, _SPEC.child("intent"), errs.declared)
    return errs.listed()


def validate_request_status(status: Object, old: Object) -> list[FieldError]:
    """Errors of the status of a request."""
    errs = ErrorList()
    validate_conditions(status.get("conditions"), _STATUS.child("conditions"), errs.errors)
    declare_progress(status, old, errs)
    return errs.listed()


class EvictionRequestStatusStrategy(ProgressStrategy):
    """What became of a request."""

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_request_status(obj.get("status") or {}, old.get("status") or {})


class EvictionRequestStrategy(StatusKeeper):
    """Requests for evictions; only their intent may change."""

    type_name = "lifecycle.v1alpha1.EvictionRequest"
    generation_rules = GenerationRules(counted=True)
    update_rules = UpdateRules(allow_unconditional=False)
    reset_fields = ("status",)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": EvictionRequestStatusStrategy}
    columns = REQUEST_COLUMNS

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_eviction_request(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_eviction_request(obj, old)
