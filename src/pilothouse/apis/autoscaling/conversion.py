"""Autoscalers between v1 and v2.

v1 knows one metric, the CPU's utilization. Everything else travels in annotations of the v1 object, encoded as JSON:

    autoscaling.alpha.kubernetes.io/metrics           the other metrics, in v1 form
    autoscaling.alpha.kubernetes.io/current-metrics   all current metrics, in v1 form
    autoscaling.alpha.kubernetes.io/conditions        the conditions
    autoscaling.alpha.kubernetes.io/behavior          the behavior, with the names of Go's fields

An annotation that does not decode is ignored. None of them is ever stored.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis import types
from pilothouse.apis.autoscaling import metric_forms
from pilothouse.apis.autoscaling.horizontal_pod_autoscaler.defaults import CPU_UTILIZATION, cpu_metric
from pilothouse.apis.core.internal_form import internal_form
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.ordering import arrange

METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"
CURRENT_METRICS: Final = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR: Final = "autoscaling.alpha.kubernetes.io/behavior"
_ROUND_TRIP: Final = (
    METRICS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
    CURRENT_METRICS,
    CONDITIONS,
)
_SHARED_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_SHARED_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def drop_round_trip_annotations(metadata: Object) -> None:
    """Remove the annotations that only exist to carry fields through v1."""
    annotations = metadata.get("annotations")
    if annotations and any(name in annotations for name in _ROUND_TRIP):
        kept = {key: value for key, value in annotations.items() if key not in _ROUND_TRIP}
        if kept:
            metadata["annotations"] = kept
        else:
            del metadata["annotations"]


def to_v2(obj: Object) -> Object:
    """A v1 autoscaler as v2."""
    spec, status = obj["spec"], obj.get("status") or {}
    metadata = dict(obj["metadata"])
    annotations = metadata.get("annotations") or {}
    made: Object = {key: spec[key] for key in _SHARED_SPEC if key in spec}
    share = spec.get("targetCPUUtilizationPercentage")
    metrics = _read_list(annotations, METRICS, "MetricSpec", metric_forms.source_to_v2)
    metrics = (metrics or []) + ([cpu_metric(share)] if share is not None else [])
    made["metrics"] = metrics or [cpu_metric(CPU_UTILIZATION)]
    behavior = read_behavior(annotations.get(BEHAVIOR))
    if behavior:
        made["behavior"] = behavior
    state: Object = {key: status[key] for key in _SHARED_STATUS if key in status}
    used = status.get("currentCPUUtilizationPercentage")
    current = _read_list(annotations, CURRENT_METRICS, "MetricStatus", metric_forms.status_to_v2)
    if current is None and used is not None:
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": used}}}]
    state["currentMetrics"] = current
    conditions = _read_list(annotations, CONDITIONS, "HorizontalPodAutoscalerCondition", dict)
    if conditions:
        state["conditions"] = conditions
    drop_round_trip_annotations(metadata)
    return _shape("v2", {**obj, "metadata": metadata, "spec": made, "status": state})


def to_v1(obj: Object) -> Object:
    """A v2 autoscaler as v1."""
    spec, status = obj["spec"], obj.get("status") or {}
    metadata = dict(obj["metadata"])
    drop_round_trip_annotations(metadata)
    made: Object = {key: spec[key] for key in _SHARED_SPEC if key in spec}
    metrics = spec.get("metrics") or ()
    shares = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu_share(metric)]
    if shares:
        made["targetCPUUtilizationPercentage"] = shares[0]
    state: Object = {key: status[key] for key in _SHARED_STATUS if key in status}
    used = _current_cpu(status.get("currentMetrics") or ())
    if used is not None:
        state["currentCPUUtilizationPercentage"] = used
    carried = dict(_carried(spec, status))
    if carried:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **carried}
    return _shape("v1", {**obj, "metadata": metadata, "spec": made, "status": state})


def _shape(version: str, obj: Object) -> Object:
    """The versions differ in which empty values they write; of metadata, none is lost."""
    made = decode(types.struct(f"autoscaling.{version}.HorizontalPodAutoscaler"), {**obj, "metadata": {}})[0]
    made["metadata"] = obj["metadata"]
    return made


def _carried(spec: Object, status: Object) -> Any:
    others = [metric_forms.source_to_v1(metric) for metric in spec.get("metrics") or () if not _is_cpu_share(metric)]
    if others:
        yield METRICS, _encode("autoscaling.v1.MetricSpec", others)
    if status.get("currentMetrics"):
        current = [metric_forms.status_to_v1(metric) for metric in status["currentMetrics"]]
        yield CURRENT_METRICS, _encode("autoscaling.v1.MetricStatus", current)
    if spec.get("behavior") is not None:
        yield BEHAVIOR, behavior_text(spec["behavior"])
    if status.get("conditions"):
        yield CONDITIONS, _encode("autoscaling.v1.HorizontalPodAutoscalerCondition", status["conditions"])


def _is_cpu_share(metric: Object) -> bool:
    resource = metric.get("resource")
    if metric.get("type") != "Resource" or resource is None or resource.get("name") != "cpu":
        return False
    return (resource.get("target") or {}).get("averageUtilization") is not None


def _current_cpu(metrics: Any) -> int | None:
    used = None
    for metric in metrics:
        resource = metric.get("resource")
        if metric.get("type") == "Resource" and resource is not None and resource.get("name") == "cpu":
            share = (resource.get("current") or {}).get("averageUtilization")
            used = used if share is None else share
    return used


def behavior_text(behavior: Object) -> str:
    """A behavior as its annotation has it."""
    return _dump(internal_form("autoscaling.v2.HorizontalPodAutoscalerBehavior", behavior))


def _encode(type_name: str, items: list[Object]) -> str:
    struct = types.struct(type_name)
    return _dump([arrange(struct, decode(struct, item)[0]) for item in items])


def _dump(value: Any) -> str:
    text = orjson.dumps(value).decode()
    for char, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(char, escape)
    return text


def _read_list(annotations: dict[str, str], name: str, kind: str, convert: Any) -> list[Object] | None:
    if name not in annotations:
        return None
    try:
        items = orjson.loads(annotations[name])
        struct = types.struct(f"autoscaling.v1.{kind}")
        return [convert(decode(struct, item)[0]) for item in items or ()]
    except (ValueError, TypeError, DecodeError):
        return None


def read_behavior(text: str | None) -> Object | None:
    """The behavior in an annotation; None where nothing can be read."""
    if text is None:
        return None
    try:
        value = _lower_names(orjson.loads(text))
        return decode(types.struct("autoscaling.v2.HorizontalPodAutoscalerBehavior"), value)[0]
    except (ValueError, TypeError, DecodeError):
        return None


def _lower_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lower_names(item) for key, item in value.items()}
    return [_lower_names(item) for item in value] if isinstance(value, list) else value


CONVERTERS = {("v1", "horizontalpodautoscalers"): (to_v2, to_v1)}
