"""Replica sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.apps.columns import REPLICA_SET_COLUMNS
from pilothouse.apis.apps.defaults import default_replica_set
from pilothouse.apis.apps.workload import (
    BLANK_SCALABLE,
    SPEC,
    STATUS,
    WorkloadStrategy,
    validate_replicated_template,
    validate_selector_kept,
    validate_within_total,
)
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.strategy import Context, Object, StatusStrategy, Strategy
from pilothouse.apis.validating import non_negative
from pilothouse.machinery.field_errors import FieldError, invalid

_COUNTS: Final = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
    "terminatingReplicas",
)  # fmt: skip


def validate_replica_set_spec(spec: Object, options: PodValidationOptions) -> list[FieldError]:
    """Faults of a replica set."""
    errs: list[FieldError] = []
    non_negative(spec.get("replicas", 0), SPEC, "replicas", errs)
    non_negative(spec.get("minReadySeconds", 0), SPEC, "minReadySeconds", errs)
    validate_replicated_template(spec, errs, options)
    return errs


def validate_replica_set_status(status: Object) -> list[FieldError]:
    """Faults of what the controller reports; the same rules hold for replication controllers."""
    errs: list[FieldError] = []
    for name in _COUNTS:
        non_negative(status.get(name) or 0, STATUS, name, errs)
    validate_within_total(status, ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"), errs)
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        why = "cannot be greater than readyReplicas"
        errs.append(invalid(STATUS.child("availableReplicas"), status.get("availableReplicas", 0), why))
    return errs


class ReplicaSetStatusStrategy(StatusStrategy):
    """What the replica set controller reports."""

    def default(self, obj: Object) -> None:
        default_replica_set(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_replica_set_status(obj.get("status") or {})


class ReplicaSetStrategy(WorkloadStrategy):
    """Replica sets."""

    type_name = "apps.v1.ReplicaSet"
    warns_about_names = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": ReplicaSetStatusStrategy}
    columns = REPLICA_SET_COLUMNS
    blank = BLANK_SCALABLE

    def default(self, obj: Object) -> None:
        default_replica_set(obj)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_replica_set_spec(obj["spec"], options_for_template(self.gates))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = validate_replica_set_spec(obj["spec"], options_for_template(self.gates, old["spec"]["template"]))
        validate_selector_kept(obj["spec"], old["spec"], errs)
        return errs
