"""One metric of an autoscaler between its v1 form, flat and by name, and its v2 form with identifier and target."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

_RESOURCES = ("resource", "containerResource")


def _pick(source: Object, **names: str) -> Object:
    return {new: source[old] for new, old in names.items() if source.get(old) is not None}


def _target(metric_type: str, value: Any, average: Any, share: Any = None) -> Object:
    made = {"type": metric_type, "value": value, "averageValue": average, "averageUtilization": share}
    return {key: item for key, item in made.items() if item is not None}


def source_to_v2(metric: Object) -> Object:
    """A metric of the spec, v1 to v2."""
    made: Object = {"type": metric.get("type", "")}
    for name, source in metric.items():
        if name == "external":
            value = source.get("targetValue")
            target = _target("AverageValue" if value is None else "Value", value, source.get("targetAverageValue"))
            made[name] = {"metric": _pick(source, name="metricName", selector="metricSelector"), "target": target}
        elif name == "object":
            made[name] = {
                "describedObject": source["target"],
                "target": _object_target(source),
                "metric": _pick(source, name="metricName", selector="selector"),
            }
        elif name == "pods":
            target = _target("AverageValue", None, source.get("targetAverageValue", "0"))
            made[name] = {"metric": _pick(source, name="metricName", selector="selector"), "target": target}
        elif name in _RESOURCES:
            share = source.get("targetAverageUtilization")
            metric_type = "AverageValue" if share is None else "Utilization"
            target = _target(metric_type, None, source.get("targetAverageValue"), share)
            made[name] = {**_pick(source, name="name", container="container"), "target": target}
    return made


def _object_target(source: Object) -> Object:
    value, average = source.get("targetValue", "0"), source.get("averageValue")
    if average is None:
        return _target("Value", value, None)
    return _target("AverageValue", None if quantity.parse(value).sign == 0 else value, average)


def source_to_v1(metric: Object) -> Object:
    """A metric of the spec, v2 to v1."""
    made: Object = {"type": metric.get("type", "")}
    for name in ("object", "pods", "external", *_RESOURCES):
        source = metric.get(name)
        if source is None:
            continue
        target, identifier = source.get("target") or {}, source.get("metric") or {}
        if name == "external":
            made[name] = {
                **_pick(identifier, metricName="name", metricSelector="selector"),
                **_pick(target, targetValue="value", targetAverageValue="averageValue"),
            }
        elif name == "object":
            made[name] = {
                "target": source["describedObject"],
                **_pick(identifier, metricName="name", selector="selector"),
                **_pick(target, targetValue="value", averageValue="averageValue"),
            }
        elif name == "pods":
            made[name] = {
                **_pick(identifier, metricName="name", selector="selector"),
                **_pick(target, targetAverageValue="averageValue"),
            }
        else:
            made[name] = {
                **_pick(source, name="name", container="container"),
                **_pick(target, targetAverageUtilization="averageUtilization", targetAverageValue="averageValue"),
            }
    return made


def status_to_v2(metric: Object) -> Object:
    """A metric of the status, v1 to v2."""
    made: Object = {"type": metric.get("type", "")}
    for name, seen in metric.items():
        if name == "external":
            current = _pick(seen, value="currentValue", averageValue="currentAverageValue")
            made[name] = {"metric": _pick(seen, name="metricName", selector="metricSelector"), "current": current}
        elif name == "object":
            current = _pick(seen, value="currentValue", averageValue="averageValue")
            metric_name = _pick(seen, name="metricName", selector="selector")
            made[name] = {"metric": metric_name, "current": current, "describedObject": seen["target"]}
        elif name == "pods":
            current = _pick(seen, averageValue="currentAverageValue")
            made[name] = {"metric": _pick(seen, name="metricName", selector="selector"), "current": current}
        elif name in _RESOURCES:
            current = _pick(seen, averageValue="currentAverageValue", averageUtilization="currentAverageUtilization")
            made[name] = {**_pick(seen, name="name", container="container"), "current": current}
    return made


def status_to_v1(metric: Object) -> Object:
    """A metric of the status, v2 to v1."""
    made: Object = {"type": metric.get("type", "")}
    for name in ("object", "pods", "external", *_RESOURCES):
        seen = metric.get(name)
        if seen is None:
            continue
        current, identifier = seen.get("current") or {}, seen.get("metric") or {}
        if name == "external":
            made[name] = {
                **_pick(identifier, metricName="name", metricSelector="selector"),
                **_pick(current, currentValue="value", currentAverageValue="averageValue"),
            }
        elif name == "object":
            made[name] = {
                "target": seen["describedObject"],
                **_pick(identifier, metricName="name", selector="selector"),
                **_pick(current, currentValue="value", averageValue="averageValue"),
            }
        elif name == "pods":
            made[name] = {
                **_pick(identifier, metricName="name", selector="selector"),
                **_pick(current, currentAverageValue="averageValue"),
            }
        else:
            made[name] = {
                **_pick(seen, name="name", container="container"),
                **_pick(current, currentAverageUtilization="averageUtilization", currentAverageValue="averageValue"),
            }
    return made
