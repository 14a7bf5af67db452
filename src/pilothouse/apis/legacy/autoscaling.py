"""Autoscalers through autoscaling/v2beta1 and v2beta2.

v2beta1 has metrics in the flat form that v1 keeps in annotations, and carries the behavior in one. v2beta2 is v2.
Neither takes the annotations of others.
"""

from __future__ import annotations

from pilothouse.apis.autoscaling import metric_forms
from pilothouse.apis.autoscaling.conversion import (
    BEHAVIOR,
    behavior_text,
    drop_round_trip_annotations,
    read_behavior,
)
from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.objects import Object


def from_v2beta1(obj: Object) -> Object:
    """As v2 has it."""
    metadata, spec, status = dict(obj["metadata"]), dict(obj["spec"]), dict(obj.get("status") or {})
    behavior = read_behavior((metadata.get("annotations") or {}).get(BEHAVIOR))
    if behavior:
        spec["behavior"] = behavior
    drop_round_trip_annotations(metadata)
    if spec.get("metrics") is not None:
        spec["metrics"] = [metric_forms.source_to_v2(metric) for metric in spec["metrics"]]
    if status.get("currentMetrics") is not None:
        status["currentMetrics"] = [metric_forms.status_to_v2(metric) for metric in status["currentMetrics"]]
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


def to_v2beta1(obj: Object) -> Object:
    """As v2beta1 has it."""
    metadata, spec, status = dict(obj["metadata"]), dict(obj["spec"]), dict(obj.get("status") or {})
    drop_round_trip_annotations(metadata)
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), BEHAVIOR: behavior_text(behavior)}
    if spec.get("metrics") is not None:
        spec["metrics"] = [metric_forms.source_to_v1(metric) for metric in spec["metrics"]]
    if status.get("currentMetrics") is not None:
        status["currentMetrics"] = [metric_forms.status_to_v1(metric) for metric in status["currentMetrics"]]
    return {**obj, "metadata": metadata, "spec": spec, "status": status}


def without_round_trip(obj: Object) -> Object:
    """Without the annotations that only exist to carry fields through other versions."""
    metadata = dict(obj["metadata"])
    drop_round_trip_annotations(metadata)
    return {**obj, "metadata": metadata}


OLDER: dict[tuple[str, str], Older] = {
    ("v2beta1", "horizontalpodautoscalers"): Older(from_v2beta1, to_v2beta1, unowned=()),
    ("v2beta2", "horizontalpodautoscalers"): Older(without_round_trip, without_round_trip, unowned=()),
}
