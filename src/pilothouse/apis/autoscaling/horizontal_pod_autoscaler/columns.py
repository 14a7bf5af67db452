"""Table columns of horizontal pod autoscalers."""

from __future__ import annotations

from typing import Any

from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.strategy import Column, Doc
from pilothouse.machinery.objects import Object

_SHOWN = 2
_UNKNOWN = "<unknown>"
_SPEC = "autoscaling.v2.HorizontalPodAutoscalerSpec"
_FIELDS = {"External": "external", "Pods": "pods", "Object": "object", "Resource": "resource"}


def _metrics(obj: Object) -> str:
    specs = obj["spec"].get("metrics") or ()
    if not specs:
        return "<none>"
    statuses = (obj.get("status") or {}).get("currentMetrics") or ()
    listed = [_metric(spec, statuses[at] if at < len(statuses) else {}) for at, spec in enumerate(specs)]
    text = ", ".join(listed[:_SHOWN])
    return text if len(listed) <= _SHOWN else f"{text} + {len(listed) - _SHOWN} more..."


def _metric(spec: Object, status: Object) -> str:
    metric_type = spec.get("type", "")
    field = "containerResource" if metric_type == "ContainerResource" else _FIELDS.get(metric_type)
    if field is None or spec.get(field) is None:
        return "<unknown type>"
    source, target = spec[field], spec[field].get("target") or {}
    seen = status.get(field)
    current: Object = (seen or {}).get("current") or {}
    if metric_type in ("External", "Object"):
        if target.get("averageValue") is not None:
            return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']} (avg)"
        return f"{_raw(seen, current, 'value')}/{target.get('value', '<nil>')}"
    if metric_type == "Pods":
        return f"{_raw(seen, current, 'averageValue')}/{target.get('averageValue', '<nil>')}"
    if target.get("averageValue") is not None:
        return f"{source.get('name', '')}: {_raw(seen, current, 'averageValue')}/{target['averageValue']}"
    share = target.get("averageUtilization")
    goal = "<auto>" if share is None else f"{share}%"
    used = current.get("averageUtilization")
    return f"{source.get('name', '')}: {_UNKNOWN if used is None else f'{used}%'}/{goal}"


def _raw(seen: Object | None, current: Object, name: str) -> Any:
    return _UNKNOWN if seen is None else current.get(name, "<nil>")


def _reference(obj: Object) -> str:
    ref = obj["spec"]["scaleTargetRef"]
    return f"{ref.get('kind', '')}/{ref.get('name', '')}"


def _least(obj: Object) -> str:
    least = obj["spec"].get("minReplicas")
    return "<unset>" if least is None else str(least)


COLUMNS = (
    NAME,
    Column("Reference", "string", _reference, description=Doc(_SPEC, "scaleTargetRef")),
    Column("Targets", "string", _metrics, description=Doc(_SPEC, "metrics")),
    Column("MinPods", "string", _least, description=Doc(_SPEC, "minReplicas")),
    Column("MaxPods", "string", lambda o: o["spec"].get("maxReplicas", 0), description=Doc(_SPEC, "maxReplicas")),
    Column(
        "Replicas",
        "string",
        lambda o: (o.get("status") or {}).get("currentReplicas", 0),
        description=Doc("autoscaling.v2.HorizontalPodAutoscalerStatus", "currentReplicas"),
    ),
    AGE,
)
