"""What pods use: themselves, and the requests and limits of their containers.

A pod that is being resized is charged for the most it may have at any moment: what it asks for, what it was given and
what it runs with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pilothouse.admission.quota.amounts import ONE, plus
from pilothouse.admission.quota.evaluators import Evaluator, Scope
from pilothouse.admission.quota.scopes import is_terminating, pod_in_scope
from pilothouse.apis.core.pod_spec.amounts import Amounts, add, combine, raise_to, read_amounts
from pilothouse.endpoints.admission import CREATE, UPDATE, Attributes
from pilothouse.machinery.names import check_qualified_name
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import Quantity
from pilothouse.machinery.times import TimeError, parse_time

_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_NAMES: Final = frozenset(
    {
        "count/pods",
        "pods",
        *_STANDARD,
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _STANDARD),
    }
)
_REQUIRED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
_HUGE_PAGES: Final = "hugepages-"
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_NATIVE: Final = "kubernetes.io/"


def is_pod_level(name: str) -> bool:
    """Whether a pod as a whole may state this resource."""
    return name in ("cpu", "memory") or name.startswith(_HUGE_PAGES)


def is_extended_in_quota(name: str) -> bool:
    """Whether a quota's name speaks of an extended resource."""
    if not name.startswith("requests."):
        return False
    native = "/" not in name or _NATIVE in name
    return not native or name.startswith(f"requests.{_DEVICE_CLASS}")


def is_extended(name: str) -> bool:
    """Whether containers request an extended resource by this name."""
    if name.startswith(_DEVICE_CLASS):
        return True
    if "/" not in name or _NATIVE in name or name.startswith("requests."):
        return False
    return not check_qualified_name(f"requests.{name}")


class PodEvaluator(Evaluator):
    """Pods."""

    def __init__(self, pod_level: bool = True, now: Callable[[], float] = time.time) -> None:
        self._pod_level, self._now = pod_level, now

    def concerns(self, operation: str, subresource: str) -> bool:
        return (operation, subresource) in ((CREATE, ""), (UPDATE, ""), (UPDATE, "resize"))

    def handles(self, attributes: Attributes) -> bool:
        if attributes.operation == CREATE or attributes.subresource:
            return True
        return is_terminating(attributes.object or {}) != is_terminating(attributes.old_object or {})

    def matching(self, names: Iterable[str]) -> list[str]:
        prefixes = (_HUGE_PAGES, f"requests.{_HUGE_PAGES}")
        return [name for name in names if name in _NAMES or name.startswith(prefixes) or is_extended_in_quota(name)]

    def in_scope(self, scope: Scope, obj: Object) -> bool:
        return pod_in_scope(scope, obj)

    def has_scopes(self) -> bool:
        return True

    def missing(self, names: Iterable[str], obj: Object) -> str:
        spec = obj.get("spec") or {}
        own = spec.get("resources") or {}
        if self._pod_level and any(is_pod_level(n) for kind in ("requests", "limits") for n in own.get(kind) or ()):
            return ""
        required = sorted(_REQUIRED.intersection(names))
        if not required:
            return ""
        lacking: dict[str, set[str]] = {}
        for kind in ("containers", "initContainers"):
            for container in spec.get(kind) or ():
                resources = container.get("resources") or {}
                requests, limits = resources.get("requests") or (), resources.get("limits") or ()
                for name in required:
                    place, _, bare = name.rpartition(".")
                    if bare not in (limits if place == "limits" else requests):
                        lacking.setdefault(name, set()).add(container.get("name", ""))
        if not lacking:
            return ""
        return "must specify " + "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))

    def usage(self, obj: Object, namespace: str) -> Amounts:
        counted: Amounts = {"count/pods": ONE}
        if not self._is_charged(obj):
            return counted
        requests, limits = effective_amounts(obj, self._pod_level)
        return plus(counted, _as_quota_names(requests, limits))

    def _is_charged(self, pod: Object) -> bool:
        """Pods that ended, or should have by now, use nothing but their place."""
        if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
            return False
        metadata = pod.get("metadata") or {}
        deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
        if not deleted or grace is None:
            return True
        try:
            return bool(self._now() <= parse_time(deleted).seconds + grace)
        except TimeError:
            return True


def _as_quota_names(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Amounts:
    used: Amounts = {"pods": ONE}
    for name in _STANDARD:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, quantity in requests.items():
        if name.startswith(_HUGE_PAGES):
            used[name] = used[f"requests.{name}"] = quantity
        elif is_extended(name):
            used[f"requests.{name}"] = quantity
    return used


def effective_amounts(pod: Object, pod_level: bool) -> tuple[Amounts, Amounts]:
    """Requests and limits of a pod with its overhead, spec and status considered."""
    spec = pod.get("spec") or {}
    requests, limits = _aggregate(pod, spec)
    own = spec.get("resources") or {}
    if pod_level:
        requests.update({n: q for n, q in read_amounts(own.get("requests")).items() if is_pod_level(n)})
        limits.update({n: q for n, q in read_amounts(own.get("limits")).items() if is_pod_level(n)})
    overhead = read_amounts(spec.get("overhead"))
    add(requests, overhead)
    add(limits, {n: q for n, q in overhead.items() if n in limits and not limits[n].is_zero})
    return requests, limits


def _aggregate(pod: Object, spec: Object) -> tuple[Amounts, Amounts]:
    statuses = _container_statuses(pod)
    requests = combine(spec, lambda container: _stated(container, "requests"))
    limits = combine(spec, lambda container: _stated(container, "limits"))
    if not statuses:
        return requests, limits
    infeasible = _is_infeasible(pod)

    def given(container: Object) -> Amounts:
        status = statuses.get(container.get("name", "")) or {}
        if status.get("allocatedResources") is not None:
            return read_amounts(status["allocatedResources"])
        return {} if infeasible else _stated(container, "requests")

    def running(container: Object) -> Amounts:
        status = statuses.get(container.get("name", "")) or {}
        found = (status.get("resources") or {}).get("requests")
        return read_amounts(found) if found is not None else given(container)

    def running_limits(container: Object) -> Amounts:
        status = statuses.get(container.get("name", "")) or {}
        found = (status.get("resources") or {}).get("limits")
        if found is not None:
            return read_amounts(found)
        return {} if infeasible else _stated(container, "limits")

    most: Amounts = {} if infeasible else requests
    raise_to(most, combine(spec, running))
    raise_to(most, combine(spec, given))
    most_limits: Amounts = {} if infeasible else limits
    raise_to(most_limits, combine(spec, running_limits))
    return most, most_limits


def _stated(container: Object, field: str) -> Amounts:
    return read_amounts((container.get("resources") or {}).get(field))


def _container_statuses(pod: Object) -> dict[str, Any]:
    status = pod.get("status") or {}
    kinds = ("containerStatuses", "initContainerStatuses")
    return {each.get("name", ""): each for kind in kinds for each in status.get(kind) or ()}


def _is_infeasible(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    pending = next((each for each in conditions if each.get("type") == "PodResizePending"), None)
    return pending is not None and pending.get("reason") == "Infeasible"
