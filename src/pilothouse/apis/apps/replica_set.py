"""Replica sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from pilothouse.apis.apps.columns import CONTAINER_COLUMNS, selector_cell, selector_column, spec_cell, status_cell
from pilothouse.apis.apps.workload import (
    BLANK_SCALABLE,
    SPEC,
    STATUS,
    WorkloadStrategy,
    validate_replicated_template,
    validate_selector_kept,
    validate_within_total,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy
from pilothouse.apis.validation import non_negative
from pilothouse.machinery.field_errors import FieldError, invalid
from pilothouse.machinery.objects import Object

REPLICA_SET_COLUMNS: Final = (
    NAME,
    Column("Desired", "integer", spec_cell("replicas"), description=Doc("apps.v1.ReplicaSetSpec", "replicas")),
    Column("Current", "integer", status_cell("replicas"), description=Doc("apps.v1.ReplicaSetStatus", "replicas")),
    Column(
        "Ready", "integer", status_cell("readyReplicas"), description=Doc("apps.v1.ReplicaSetStatus", "readyReplicas")
    ),
    AGE,
    *CONTAINER_COLUMNS,
    selector_column(selector_cell, "apps.v1.ReplicaSetSpec"),
)
_COUNTS: Final = (
    "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration",
    "terminatingReplicas",
)  # fmt: skip


def default_replica_set(obj: Object) -> None:
    """One replica."""
    spec = obj["spec"]
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    default_pod_template(spec.setdefault("template", {"metadata": {}, "spec": {"containers": None}}))


def validate_replica_set_spec(spec: Object, options: PodValidationOptions) -> list[FieldError]:
    """Errors of a replica set."""
    errs: list[FieldError] = []
    non_negative(spec.get("replicas", 0), SPEC, "replicas", errs)
    non_negative(spec.get("minReadySeconds", 0), SPEC, "minReadySeconds", errs)
    validate_replicated_template(spec, errs, options)
    return errs


def validate_replica_set_status(status: Object) -> list[FieldError]:
    """Errors of what the controller reports; the same rules hold for replication controllers."""
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
        if self.keeps_selector:
            validate_selector_kept(obj["spec"], old["spec"], errs)
        return errs
