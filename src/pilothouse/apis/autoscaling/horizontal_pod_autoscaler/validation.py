"""What makes horizontal pod autoscalers wrong."""

from __future__ import annotations

from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.metric_validation import (
    is_api_version_fine,
    validate_metrics,
    validate_reference,
)
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.validation import non_negative, non_negative_quantity, one_of
from pilothouse.machinery.field_errors import FieldError, Path, invalid, required
from pilothouse.machinery.objects import Object

_SPEC = Path("spec")
_STATUS = Path("status")
_PERIOD_LIMIT = 1800
_WINDOW_LIMIT = 3600


def validate_autoscaler(obj: Object, old: Object | None = None, *, least_allowed: int = 0) -> list[FieldError]:
    """Errors of an autoscaler. References that were wrong before may stay as they are."""
    errs = ErrorList()
    spec = obj["spec"]
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and most < least:
        why = "must be greater than or equal to `minReplicas`"
        errs.errors.append(invalid(_SPEC.child("maxReplicas"), most, why))
    _validate_target(spec["scaleTargetRef"], old, errs.errors)
    validate_metrics(spec, _SPEC.child("metrics"), errs.errors, lenient=_has_bad_object_metric(old))
    behavior = spec.get("behavior") or {}
    for name in ("scaleUp", "scaleDown"):
        if behavior.get(name) is not None:
            _validate_rules(behavior[name], _SPEC.child("behavior", name), errs.errors)
    if least is not None and least < least_allowed:
        why = f"must be greater than or equal to {least_allowed}"
        errs.declared.append(invalid(_SPEC.child("minReplicas"), least, why))
    if most == 0:
        errs.declared.append(required(_SPEC.child("maxReplicas")))
    elif most < 0:
        errs.declared.append(invalid(_SPEC.child("maxReplicas"), most, "must be greater than or equal to 1"))
    return errs.listed()


def _validate_target(ref: Object, old: Object | None, errs: list[FieldError]) -> None:
    before = old["spec"]["scaleTargetRef"] if old is not None else None
    same = before is not None and all(before.get(k, "") == ref.get(k, "") for k in ("apiVersion", "kind"))
    bare = ref.get("kind") == "ReplicationController"
    validate_reference(ref, _SPEC.child("scaleTargetRef"), errs, lenient=same, allow_core=bare)


def _has_bad_object_metric(old: Object | None) -> bool:
    metrics = (old["spec"].get("metrics") or ()) if old is not None else ()
    return any(
        metric.get("type") == "Object"
        and metric.get("object")
        and not is_api_version_fine(metric["object"]["describedObject"])
        for metric in metrics
    )


def _validate_rules(rules: Object, path: Path, errs: list[FieldError]) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errs.append(invalid(path.child("stabilizationWindowSeconds"), window, "must be greater than or equal to zero"))
    if window is not None and window > _WINDOW_LIMIT:
        why = f"must be less than or equal to {_WINDOW_LIMIT}"
        errs.append(invalid(path.child("stabilizationWindowSeconds"), window, why))
    if rules.get("selectPolicy") is not None:
        one_of(rules["selectPolicy"], ("Disabled", "Max", "Min"), path, "selectPolicy", errs)
    policies = rules.get("policies") or ()
    if not policies:
        errs.append(required(path.child("policies"), "must specify at least one Policy"))
    for position, policy in enumerate(policies):
        _validate_policy(policy, path.child("policies").index(position), errs)
    if rules.get("tolerance") is not None:
        non_negative_quantity(rules["tolerance"], path.child("tolerance"), errs)


def _validate_policy(policy: Object, path: Path, errs: list[FieldError]) -> None:
    one_of(policy.get("type", ""), ("Percent", "Pods"), path, "type", errs)
    for name in ("value", "periodSeconds"):
        value = policy.get(name, 0)
        if value <= 0:
            errs.append(invalid(path.child(name), value, "must be greater than zero"))
    period = policy.get("periodSeconds", 0)
    if period > _PERIOD_LIMIT:
        errs.append(invalid(path.child("periodSeconds"), period, f"must be less than or equal to {_PERIOD_LIMIT}"))


def validate_autoscaler_status(obj: Object) -> list[FieldError]:
    """Errors of what the controller reports."""
    status = obj.get("status") or {}
    errs: list[FieldError] = []
    for position, condition in enumerate(status.get("conditions") or ()):
        if condition.get("observedGeneration") is not None:
            path = _STATUS.child("conditions").index(position)
            non_negative(condition["observedGeneration"], path, "observedGeneration", errs)
    non_negative(status.get("currentReplicas", 0), _STATUS, "currentReplicas", errs)
    non_negative(status.get("desiredReplicas", 0), _STATUS, "desiredReplicas", errs)
    return errs
