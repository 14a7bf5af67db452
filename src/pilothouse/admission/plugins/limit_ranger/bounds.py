"""Comparing what is asked for with what a LimitRange allows, in kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pilothouse.admission.plugins.limit_ranger.compiled import CompiledRange, Limit
from pilothouse.apis.core.pod_spec.amounts import POD_LEVEL, Amounts, pod_amounts, read_amounts
from pilothouse.machinery.quantity import MAX_MILLI_VALUE, ZERO, Quantity


def check_pod(limits: CompiledRange, spec: Mapping[str, Any], pod_level: bool) -> list[str]:
    """What is wrong with a pod's resources."""
    errs: list[str] = []
    for limit in limits.limits:
        if limit.type == "Container":
            for kind in ("containers", "initContainers"):
                for container in spec.get(kind) or ():
                    resources = container.get("resources") or {}
                    requests, bounds = read_amounts(resources.get("requests")), read_amounts(resources.get("limits"))
                    errs += _check(limit, requests, bounds)
        elif limit.type == "Pod":
            supported = POD_LEVEL.__contains__ if pod_level else _unsupported
            requests = pod_amounts(spec, "requests", supported)
            errs += _check(limit, requests, pod_amounts(spec, "limits", supported))
    return errs


def _unsupported(name: str) -> bool:
    return False


def check_claim(limits: CompiledRange, spec: Mapping[str, Any]) -> list[str]:
    """What is wrong with the size a claim requests."""
    errs: list[str] = []
    requests = read_amounts((spec.get("resources") or {}).get("requests"))
    for limit in limits.limits:
        if limit.type == "PersistentVolumeClaim":
            for name, least in limit.minimum.items():
                errs += _check_minimum(limit.type, name, least, requests, {})
            for name, most in limit.maximum.items():
                errs += _check_requested_maximum(limit.type, name, most, requests)
    return errs


def _check(limit: Limit, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in limit.minimum.items():
        yield from _check_minimum(limit.type, name, least, requests, limits)
    for name, most in limit.maximum.items():
        yield from _check_maximum(limit.type, name, most, requests, limits)
    for name, ratio in limit.ratio.items():
        yield from _check_ratio(limit.type, name, ratio, requests, limits)


def _comparable(*quantities: Quantity | None) -> list[int]:
    """Amounts as whole numbers at a common precision, thousandths where they fit."""
    given = [quantity or ZERO for quantity in quantities]
    whole = [quantity.value() for quantity in given]
    if all(value <= MAX_MILLI_VALUE for value in whole):
        return [quantity.milli_value() for quantity in given]
    return whole


def _check_minimum(type: str, name: str, least: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    asked, bound, enforced = _comparable(request, limit, least)
    prefix = f"minimum {name} usage per {type} is {least}"
    if request is None:
        yield f"{prefix}.  No request is specified"
    elif asked < enforced:
        yield f"{prefix}, but request is {request}"
    elif limit is not None and bound < enforced:
        yield f"{prefix}, but limit is {limit}"


def _check_requested_maximum(type: str, name: str, most: Quantity, requests: Amounts) -> Iterator[str]:
    request = requests.get(name)
    asked, _, enforced = _comparable(request, None, most)
    if request is None:
        yield f"maximum {name} usage per {type} is {most}.  No request is specified"
    elif asked > enforced:
        yield f"maximum {name} usage per {type} is {most}, but request is {request}"


def _check_maximum(type: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    asked, bound, enforced = _comparable(request, limit, most)
    prefix = f"maximum {name} usage per {type} is {most}"
    if limit is None:
        yield f"{prefix}.  No limit is specified"
    elif bound > enforced:
        yield f"{prefix}, but limit is {limit}"
    elif request is not None and asked > enforced:
        yield f"{prefix}, but request is {request}"


def _check_ratio(type: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    asked, bound, _ = _comparable(requests.get(name), limits.get(name), most)
    prefix = f"{name} max limit to request ratio per {type} is {most}"
    if name not in requests or asked == 0:
        yield f"{prefix}, but no request is specified or request is 0"
    elif name not in limits or bound == 0:
        yield f"{prefix}, but no limit is specified or limit is 0"
    else:
        ratio = bound / asked
        observed, allowed = ratio, float(most.value())
        if most.value() <= MAX_MILLI_VALUE:
            observed, allowed = ratio * 1000, float(most.milli_value())
        if observed > allowed:
            yield f"{prefix}, but provided ratio is {ratio:.6f}"
