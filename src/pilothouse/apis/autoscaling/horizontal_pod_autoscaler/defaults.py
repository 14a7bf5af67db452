"""Defaults of autoscalers: at least one pod, 80 % of the CPU, and rules for both directions where one has some."""

from __future__ import annotations

from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

CPU_UTILIZATION = 80


def cpu_metric(percentage: int) -> Object:
    """The metric that means this share of the requested CPU."""
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def default_autoscaler(obj: Object) -> None:
    """Fill in what the user left open."""
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [cpu_metric(CPU_UTILIZATION)]
    behavior = spec.get("behavior")
    if behavior is not None:
        up = [_policy("Pods", 4), _policy("Percent", 100)]
        behavior["scaleUp"] = _complete(behavior.get("scaleUp"), {"stabilizationWindowSeconds": 0}, up)
        behavior["scaleDown"] = _complete(behavior.get("scaleDown"), {}, [_policy("Percent", 100)])


def _policy(type: str, value: int) -> Object:
    return {"type": type, "value": value, "periodSeconds": 15}


def _complete(rules: Object | None, start: Object, policies: list[Object]) -> Object:
    if rules is None:
        rules = {}
    own = {} if as_given(rules, "policies") == [] else {"policies": policies}
    return {**start, "selectPolicy": "Max", **own, **rules}
