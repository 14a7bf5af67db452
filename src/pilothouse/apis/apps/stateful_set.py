"""Stateful sets: pods with an identity, and claims of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pilothouse.apis.apps.amounts import is_nothing, validate_amount, validate_not_above_all
from pilothouse.apis.apps.columns import CONTAINER_COLUMNS, READY_WORDS, ready_cell
from pilothouse.apis.apps.workload import (
    BLANK_SCALABLE,
    SPEC,
    STATUS,
    WorkloadStrategy,
    understand_selector,
    validate_collisions_kept,
    validate_endless,
    validate_required_selector,
    validate_selector_kept,
    validate_within_total,
)
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.apis.core.persistent_volume_claim.strategy import default_claim, warn_about_claim_spec
from pilothouse.apis.core.persistent_volume_claim.validation import validate_claim_spec
from pilothouse.apis.core.pod_spec.annotations import validate_pod_annotations
from pilothouse.apis.core.pod_spec.defaults import default_pod_template
from pilothouse.apis.core.pod_spec.options import PodValidationOptions, options_for_template
from pilothouse.apis.core.pod_spec.templates import validate_pod_template
from pilothouse.apis.metadata import validate_annotations, validate_labels
from pilothouse.apis.object_names import name_is_dns_label
from pilothouse.apis.selectors import validate_selector_matches_template
from pilothouse.apis.strategy import Column, Context, StatusStrategy, Strategy
from pilothouse.apis.validation import IMMUTABLE, non_negative, well_formed
from pilothouse.machinery.field_errors import FieldError, Named, Path, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_label
from pilothouse.machinery.objects import Object

STATEFUL_SET_COLUMNS: Final = (
    NAME,
    Column("Ready", "string", ready_cell, description=READY_WORDS),
    AGE,
    *CONTAINER_COLUMNS,
)
_RECREATE: Final = "Recreate"
_RETENTION: Final = ("Retain", "Delete")
_COUNTS: Final = (
    "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration",
    "collisionCount",
)  # fmt: skip
_HISTORY_WARNING: Final = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)


def default_stateful_set(obj: Object, *, with_unavailable: bool = True) -> None:
    """One replica, made and updated in order, claims kept."""
    spec = obj["spec"]
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        rolling.setdefault("partition", 0)
        if with_unavailable:
            rolling.setdefault("maxUnavailable", 1)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    for key in ("whenDeleted", "whenScaled"):
        if not retention.get(key):
            retention[key] = "Retain"
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if spec.get("revisionHistoryLimit") is None:
        spec["revisionHistoryLimit"] = 10
    default_pod_template(spec["template"])
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        default_claim(claim)


def validate_stateful_set_spec(
    spec: Object, options: PodValidationOptions, old: Object | None = None, *, with_template: bool = True
) -> list[FieldError]:
    """Errors of a stateful set. Fields that cannot change are judged only when it is new."""
    errs: list[FieldError] = []
    is_new = old is None
    had_recreate = old is not None and old["updateStrategy"].get("type") == _RECREATE
    _validate_policies(spec, errs, may_recreate=had_recreate or "StatefulSetRecreateStrategy" in options.gates)
    if is_new:
        for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errs += validate_claim_spec(SPEC.child("volumeClaimTemplates").index(position).child("spec"), claim["spec"])
    non_negative(spec.get("replicas", 0), SPEC, "replicas", errs)
    non_negative(spec.get("minReadySeconds", 0), SPEC, "minReadySeconds", errs)
    non_negative((spec.get("ordinals") or {}).get("start", 0), SPEC, "ordinals.start", errs)
    if is_new and spec.get("serviceName"):
        well_formed(spec["serviceName"], check_dns1123_label, SPEC, "serviceName", errs)
    validate_required_selector(spec.get("selector"), "statefulset", errs)
    selector = understand_selector(spec.get("selector"), errs, "")
    path, template = SPEC.child("template"), spec["template"]
    if selector is not None:
        validate_selector_matches_template(selector, template, path, errs)
        if with_template:
            validate_pod_template(_as_pods_will_be(spec), path, errs, options)
        else:
            _validate_template_metadata(template, path, errs, options)
    validate_endless(template, path, errs, "StatefulSet")
    return errs


def _validate_policies(spec: Object, errs: list[FieldError], *, may_recreate: bool) -> None:
    policy = spec.get("podManagementPolicy", "")
    if not policy:
        errs.append(required(SPEC.child("podManagementPolicy"), ""))
    elif policy not in ("OrderedReady", "Parallel"):
        errs.append(invalid(SPEC.child("podManagementPolicy"), Named(policy), "must be 'OrderedReady' or 'Parallel'"))
    _validate_rollout(spec["updateStrategy"], SPEC.child("updateStrategy"), errs, may_recreate)
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for name in ("whenDeleted", "whenScaled"):
            if retention.get(name, "") not in _RETENTION:
                path = SPEC.child("persistentVolumeClaimRetentionPolicy", name)
                errs.append(not_supported(path, retention.get(name, ""), _RETENTION))


def _validate_rollout(strategy: Object, path: Path, errs: list[FieldError], may_recreate: bool) -> None:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if not kind:
        errs.append(required(path, ""))
    elif kind == "OnDelete" or (kind == _RECREATE and may_recreate):
        if rolling is not None:
            why = "only allowed for updateStrategy 'RollingUpdate'"
            errs.append(invalid(path.child("rollingUpdate"), _shown_rolling(rolling), why))
    elif kind == "RollingUpdate":
        if rolling is not None:
            _validate_rolling(rolling, path.child("rollingUpdate"), errs)
    else:
        shown = {"Type": kind, "RollingUpdate": None if rolling is None else _shown_rolling(rolling)}
        choices = "'RollingUpdate', 'OnDelete', or 'Recreate'" if may_recreate else "'RollingUpdate' or 'OnDelete'"
        errs.append(invalid(path, shown, f"must be {choices}"))


def _shown_rolling(rolling: Object) -> Any:
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _validate_rolling(rolling: Object, path: Path, errs: list[FieldError]) -> None:
    non_negative(rolling.get("partition", 0), path, "partition", errs)
    missing = rolling.get("maxUnavailable")
    if missing is not None:
        where = path.child("maxUnavailable")
        validate_amount(missing, where, errs)
        if is_nothing(missing):
            errs.append(invalid(where, missing, "cannot be 0"))
        validate_not_above_all(missing, where, errs)


def _as_pods_will_be(spec: Object) -> Object:
    """The template with a volume for each claim template, without the host names that the controller sets itself."""
    template: Object = spec["template"]
    claims = dict.fromkeys(claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates") or ())
    pod = template["spec"]
    if not claims and not pod.get("subdomain") and not pod.get("hostname"):
        return template
    pod = {key: value for key, value in pod.items() if key not in ("subdomain", "hostname")}
    if claims:
        own = [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
        pod["volumes"] = [*({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims), *own]
    return {**template, "spec": pod}


def _validate_template_metadata(
    template: Object, path: Path, errs: list[FieldError], options: PodValidationOptions
) -> None:
    metadata = template["metadata"]
    validate_labels(metadata.get("labels") or {}, path.child("labels"), errs)
    annotations = metadata.get("annotations") or {}
    if annotations:
        validate_annotations(annotations, path.child("annotations"), errs)
        validate_pod_annotations(annotations, template["spec"], path.child("annotations"), errs, options)


def validate_stateful_set_update(spec: Object, old: Object, options: PodValidationOptions) -> list[FieldError]:
    """Errors of a change. A template is not judged where the whole set was invalid before."""
    errs = validate_stateful_set_spec(spec, options, old)
    if errs and validate_stateful_set_spec(old, options, old):
        errs = validate_stateful_set_spec(spec, options, old, with_template=False)
    validate_selector_kept(spec, old, errs)
    claims = spec.get("volumeClaimTemplates")
    if (claims or None) != (old.get("volumeClaimTemplates") or None):
        shown = internal_form("core.v1.PersistentVolumeClaim", claims)
        errs.append(invalid(SPEC.child("volumeClaimTemplates"), shown, IMMUTABLE))
    for name, shown_as in (("serviceName", str), ("podManagementPolicy", Named)):
        if spec.get(name, "") != old.get(name, ""):
            errs.append(invalid(SPEC.child(name), shown_as(spec.get(name, "")), IMMUTABLE))
    return errs


def validate_stateful_set_status(status: Object, old: Object) -> list[FieldError]:
    """Errors of what the controller reports."""
    errs: list[FieldError] = []
    for name in _COUNTS:
        non_negative(status.get(name) or 0, STATUS, name, errs)
    validate_within_total(status, ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"), errs)
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        why = "cannot be greater than status.readyReplicas"
        errs.append(invalid(STATUS.child("availableReplicas"), status.get("availableReplicas", 0), why))
    validate_collisions_kept(status, old, errs)
    return errs


class StatefulSetStatusStrategy(StatusStrategy):
    """What the stateful set controller reports."""

    def default(self, obj: Object) -> None:
        default_stateful_set(obj, with_unavailable="MaxUnavailableStatefulSet" in self.gates)

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        return validate_stateful_set_status(obj.get("status") or {}, old.get("status") or {})


class StatefulSetStrategy(WorkloadStrategy):
    """Stateful sets."""

    type_name = "apps.v1.StatefulSet"
    validate_name = staticmethod(name_is_dns_label)
    subresources: ClassVar[Mapping[str, type[Strategy]]] = {"status": StatefulSetStatusStrategy}
    columns = STATEFUL_SET_COLUMNS
    blank = BLANK_SCALABLE

    def default(self, obj: Object) -> None:
        default_stateful_set(obj, with_unavailable="MaxUnavailableStatefulSet" in self.gates)

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_stateful_set_spec(obj["spec"], options_for_template(self.gates))

    def validate_update(self, ctx: Context, obj: Object, old: Object) -> list[FieldError]:
        options = options_for_template(self.gates, old["spec"]["template"])
        return validate_stateful_set_update(obj["spec"], old["spec"], options)

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        return super().warnings_on_create(ctx, obj) + _own_warnings(obj["spec"], "")

    def warnings_on_update(self, ctx: Context, obj: Object, old: Object) -> list[str]:
        return super().warnings_on_update(ctx, obj, old) + _own_warnings(obj["spec"], ".Spec")


def _own_warnings(spec: Object, step: str) -> list[str]:
    warnings: list[str] = []
    for position, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        warnings += warn_about_claim_spec(f"spec.volumeClaimTemplates[{position}]{step}", claim["spec"])
    if (spec.get("revisionHistoryLimit") or 0) < 0:
        warnings.append(_HISTORY_WARNING)
    return warnings
