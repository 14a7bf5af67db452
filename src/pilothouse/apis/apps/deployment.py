"""Deployments: their rules, and the annotation that once was a field (``rollbackTo``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.apps.amounts import is_nothing, validate_amount, validate_not_above_all
from pilothouse.apis.apps.columns import CONTAINER_COLUMNS, READY_WORDS, ready_cell, selector_column, status_cell
from pilothouse.apis.apps.workload import (
    BLANK_SCALABLE,
    SPEC,
    STATUS,
    WorkloadStrategy,
    validate_collisions_kept,
    validate_replicated_template,
    validate_selector_kept,
    validate_within_total,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.integers import parse_integer
from pilothouse.apis.strategy import Column, Context, Doc, StatusStrategy, Strategy, keep
from pilothouse.apis.validation import NEGATIVE, non_negative
from pilothouse.machinery import errors, labels
from pilothouse.machinery.field_errors import FieldError, Path, as_json, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

ROLLBACK: Final = "deprecated.deployment.rollback.to"
_TYPES: Final = ("Recreate", "RollingUpdate")
_COUNTS: Final = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
    "terminatingReplicas", "collisionCount",
)  # fmt: skip


def default_deployment(obj: Object) -> None:
    """One replica, rolled over by quarters, with ten revisions to go back to."""
    spec = obj["spec"]
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    strategy = spec["strategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    if spec.get("progressDeadlineSeconds") is None:
        spec["progressDeadlineSeconds"] = 600
    default_pod_template(spec["template"])


def _plain_selector_cell(obj: Object) -> str:
    try:
        return str(labels.from_object(obj["spec"].get("selector")))
    except labels.SelectorError:
        return "<invalid>"


DEPLOYMENT_COLUMNS: Final = (
    NAME,
    Column("Ready", "string", ready_cell, description=READY_WORDS),
    Column(
        "Up-to-date",
        "string",
        status_cell("updatedReplicas"),
        description=Doc("apps.v1.DeploymentStatus", "updatedReplicas"),
    ),
    Column(
        "Available",
        "string",
        status_cell("availableReplicas"),
        description=Doc("apps.v1.DeploymentStatus", "availableReplicas"),
    ),
    AGE,
    *CONTAINER_COLUMNS,
    selector_column(_plain_selector_cell, "apps.v1.DeploymentSpec"),
)


def settle_rollback(obj: Object) -> None:
    """Read the revision to roll back to; without a number in it the annotation goes, or the request is refused."""
    annotations = obj["metadata"].get("annotations")
    if not annotations or ROLLBACK not in annotations:
        return
    text = annotations[ROLLBACK]
    if text:
        try:
            annotations[ROLLBACK] = str(parse_integer(text))
        except ValueError as error:
            why = f"failed to parse annotation[{ROLLBACK}]={text} as int64: {error}"
            raise errors.bad_request(f'Deployment in version "v1" cannot be handled as a Deployment: {why}') from None
        return
    del annotations[ROLLBACK]
    if not annotations:
        del obj["metadata"]["annotations"]


def validate_deployment_spec(obj: Object, options: PodValidationOptions) -> list[FieldError]:
    """Errors of a deployment."""
    spec = obj["spec"]
    errs: list[FieldError] = []
    non_negative(spec.get("replicas", 0), SPEC, "replicas", errs)
    validate_replicated_template(spec, errs, options)
    _validate_rollout(spec["strategy"], SPEC.child("strategy"), errs)
    ready = spec.get("minReadySeconds", 0)
    non_negative(ready, SPEC, "minReadySeconds", errs)
    non_negative(spec.get("revisionHistoryLimit") or 0, SPEC, "revisionHistoryLimit", errs)
    rollback = (obj["metadata"].get("annotations") or {}).get(ROLLBACK)
    if rollback is not None and int(rollback) < 0:
        errs.append(invalid(SPEC.child("rollback", "version"), int(rollback), NEGATIVE))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        non_negative(deadline, SPEC, "progressDeadlineSeconds", errs)
        if deadline <= ready:
            why = "must be greater than minReadySeconds"
            errs.append(invalid(SPEC.child("progressDeadlineSeconds"), deadline, why))
    return errs


def _validate_rollout(strategy: Object, path: Path, errs: list[FieldError]) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            errs.append(forbidden(path.child("rollingUpdate"), why))
    elif kind != "RollingUpdate":
        errs.append(not_supported(path, _shown(strategy), _TYPES))
    elif rolling is None:
        errs.append(required(path.child("rollingUpdate"), "this should be defaulted and never be nil"))
    else:
        _validate_rolling(rolling, path.child("rollingUpdate"), errs)


def _shown(strategy: Object) -> Any:
    shown = internal_form("apps.v1.DeploymentStrategy", strategy)
    if shown["RollingUpdate"]:
        shown["RollingUpdate"] = {key: 0 if value is None else value for key, value in shown["RollingUpdate"].items()}
    return shown


def _validate_rolling(rolling: Object, path: Path, errs: list[FieldError]) -> None:
    missing, extra = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    validate_amount(missing, path.child("maxUnavailable"), errs)
    validate_amount(extra, path.child("maxSurge"), errs)
    if is_nothing(missing) and is_nothing(extra):
        errs.append(invalid(path.child("maxUnavailable"), as_json(missing), "may not be 0 when `maxSurge` is 0"))
    validate_not_above_all(missing, path.child("maxUnavailable"), errs)


def validate_deployment_status(obj: Object, old: Object) -> list[FieldError]:
    """Errors of what the deployment controller reports."""
    status = obj.get("status") or {}
    errs: list[FieldError] = []
    for name in _COUNTS:
        non_negative(status.get(name) or 0, STATUS, name, errs)
    ready, available = status.get("readyReplicas", 0), status.get("availableReplicas", 0)
    validate_within_total(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), errs)
    if available > ready:
        errs.append(invalid(STATUS.child("availableReplicas"), available, "cannot be greater than readyReplicas"))
    validate_collisions_kept(status, old.get("status") or {}, errs)
    return errs


class DeploymentStatusStrategy(StatusStrategy):
    """What the deployment controller reports. Labels stay as they are, and so does the rollback."""

    reset_fields: tuple[str, ...] = ("spec", "metadata.labels")
    hidden_annotations: ClassVar[tuple[str, ...]] = (ROLLBACK,)

    def default(self, obj: Object) -> None:
        settle_rollback(obj)
        default_deployment(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        keep(obj["metadata"], old["metadata"], "labels")
        keep_annotation(obj, old, ROLLBACK)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_deployment_status(obj, old)


def keep_annotation(obj: Object, old: Object, name: str) -> None:
    """Give an annotation that stands for a field of the spec the value it had."""
    annotations = obj["metadata"].get("annotations") or {}
    value = (old["metadata"].get("annotations") or {}).get(name)
    if annotations.get(name) == value:
        return
    if value is None:
        kept = {key: text for key, text in annotations.items() if key != name}
    else:
        kept = {**annotations, name: value}
    if kept:
        obj["metadata"]["annotations"] = kept
    else:
        obj["metadata"].pop("annotations", None)


class DeploymentStrategy(WorkloadStrategy):
    """Deployments. Replica sets get their annotations too, so a change of annotations counts as one of the spec."""

    type_name = "apps.v1.Deployment"
    warns_about_names = True
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": DeploymentStatusStrategy}
    columns = DEPLOYMENT_COLUMNS
    blank = BLANK_SCALABLE
    hidden_annotations: ClassVar[tuple[str, ...]] = (ROLLBACK,)

    def default(self, obj: Object) -> None:
        settle_rollback(obj)
        default_deployment(obj)

    def prepare_for_update(self, ctx: Context, obj: Object, old: Object) -> None:
        super().prepare_for_update(ctx, obj, old)
        metadata, before = obj["metadata"], old["metadata"]
        if (metadata.get("annotations") or {}) != (before.get("annotations") or {}):
            metadata["generation"] = before.get("generation", 0) + 1

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_deployment_spec(obj, options_for_template(self.gates))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        errs = validate_deployment_spec(obj, options_for_template(self.gates, old["spec"]["template"]))
        if self.keeps_selector:
            validate_selector_kept(obj["spec"], old["spec"], errs)
        return errs
