"""What makes the metrics of an autoscaler wrong: one source each, with a name and a target that suits it."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.resource_names import check_container_resource_name
from pilothouse.machinery import names, quantity
from pilothouse.machinery.field_errors import FieldError, Named, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object

_FIELDS: Final = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "External": "external",
    "ContainerResource": "containerResource",
}
_TYPES: Final = tuple(sorted(_FIELDS))
_CHECKED: Final = ("object", "external", "pods", "resource", "containerResource")
_TARGET_TYPES: Final = ("Utilization", "Value", "AverageValue")


def validate_metrics(spec: Object, path: Path, errs: list[FieldError], *, lenient: bool) -> None:
    """Errors of all metrics; scaling to zero needs one that does not come from the pods."""
    metrics = spec.get("metrics") or ()
    for position, metric in enumerate(metrics):
        _validate_metric(metric, path.index(position), errs, lenient)
    if spec.get("minReplicas") == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        errs.append(forbidden(path, why))


def _validate_metric(metric: Object, path: Path, errs: list[FieldError], lenient: bool) -> None:
    source_type = metric.get("type", "")
    if not source_type:
        errs.append(required(path.child("type"), "must specify a metric source type"))
    if source_type not in _FIELDS:
        errs.append(not_supported(path.child("type"), source_type, _TYPES))
    present = [name for name in _CHECKED if metric.get(name) is not None]
    if present:
        _validate_source(present[0], metric[present[0]], path.child(present[0]), errs, lenient)
    wanted = _FIELDS.get(source_type)
    if wanted is not None and metric.get(wanted) is None:
        errs.append(required(path.child(wanted), "must populate information for the given metric source"))
    if len(present) != 1:
        others = sorted(name for name in present if name != wanted)
        errs += (forbidden(path.child(name), "must populate the given metric source only") for name in others)


def _validate_source(name: str, source: Object, path: Path, errs: list[FieldError], lenient: bool) -> None:
    target = source.get("target") or {}
    if name == "object":
        validate_reference(
            source["describedObject"], path.child("describedObject"), errs, lenient=lenient, allow_core=True
        )
    if name in ("object", "external", "pods"):
        _validate_identifier(source.get("metric") or {}, path.child("metric"), errs)
    else:
        _validate_resource(name, source, path, errs)
    _validate_target(target, path.child("target"), errs)
    _validate_choice(name, target, path.child("target"), errs)


def _validate_resource(name: str, source: Object, path: Path, errs: list[FieldError]) -> None:
    if not source.get("name"):
        errs.append(required(path.child("name"), "must specify a resource name"))
    elif name == "containerResource":
        errs += check_container_resource_name(path.child("name"), source["name"])
    if name == "containerResource":
        container = source.get("container", "")
        if not container:
            errs.append(required(path.child("container"), "must specify a container"))
        else:
            errs += (invalid(path.child("container"), container, m) for m in names.check_dns1123_label(container))


def _validate_choice(name: str, target: Object, path: Path, errs: list[FieldError]) -> None:
    """Which amounts a source's target may and must hold."""
    value, average = target.get("value") is not None, target.get("averageValue") is not None
    share = target.get("averageUtilization") is not None
    if name == "object" and not value and not average:
        errs.append(required(path.child("averageValue"), "must set either a target value or averageValue"))
    elif name == "external" and not value and not average:
        why = "must set either a target value for metric or a per-pod target"
        errs.append(required(path.child("averageValue"), why))
    elif name == "external" and value and average:
        why = "may not set both a target value for metric and a per-pod target"
        errs.append(forbidden(path.child("value"), why))
    elif name == "pods" and not average:
        errs.append(required(path.child("averageValue"), "must specify a positive target averageValue"))
    elif name in ("resource", "containerResource") and share == average:
        if share:
            why = "may not set both a target raw value and a target utilization"
            errs.append(forbidden(path.child("averageValue"), why))
        else:
            why = "must set either a target raw value or a target utilization"
            errs.append(required(path.child("averageUtilization"), why))


def _validate_target(target: Object, path: Path, errs: list[FieldError]) -> None:
    source_type = target.get("type", "")
    if not source_type:
        errs.append(required(path.child("type"), "must specify a metric target type"))
    if source_type not in _TARGET_TYPES:
        why = "must be either Utilization, Value, or AverageValue"
        errs.append(invalid(path.child("type"), Named(source_type), why))
    for name in ("value", "averageValue"):
        amount = target.get(name)
        if amount is not None and quantity.parse(amount).sign <= 0:
            errs.append(invalid(path.child(name), amount, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        errs.append(invalid(path.child("averageUtilization"), share, "must be greater than 0"))


def _validate_identifier(metric: Object, path: Path, errs: list[FieldError]) -> None:
    name = metric.get("name", "")
    if not name:
        errs.append(required(path.child("name"), "must specify a metric name"))
    else:
        errs += (invalid(path.child("name"), name, message) for message in names.check_path_segment_name(name))


def validate_reference(ref: Object, path: Path, errs: list[FieldError], *, lenient: bool, allow_core: bool) -> None:
    """Errors of a reference to a scalable or measured object."""
    for name in ("kind", "name"):
        value = ref.get(name, "")
        if not value:
            errs.append(required(path.child(name)))
        else:
            errs += (invalid(path.child(name), value, message) for message in names.check_path_segment_name(value))
    if not lenient:
        version = ref.get("apiVersion", "")
        try:
            if not parse_group_version(version).group and not allow_core:
                errs.append(invalid(path.child("apiVersion"), version, "apiVersion must specify API group"))
        except ValueError as error:
            errs.append(invalid(path.child("apiVersion"), version, str(error)))


def is_api_version_fine(ref: Object) -> bool:
    """Whether a measured object's version can be read at all."""
    try:
        parse_group_version(ref.get("apiVersion", ""))
    except ValueError:
        return False
    return True
