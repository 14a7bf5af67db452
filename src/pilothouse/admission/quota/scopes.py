"""Scopes of quotas: which pods and claims they speak of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pilothouse.apis.core.pod.qos import BEST_EFFORT, qos_of
from pilothouse.machinery.objects import Object

Scope = dict[str, Any]
_TERMS: Final = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")


def scopes_of(spec: Object) -> list[Scope]:
    """All scopes of a quota, in one form."""
    named = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    return named + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def selects(scope: Scope, values: Iterable[str]) -> bool:
    """Whether any of the values an object has under a scope meets its condition; no value meets NotIn."""
    wanted = scope.get("values") or ()
    given = list(values)
    operator = scope.get("operator")
    if operator == "Exists":
        return bool(given)
    if operator == "DoesNotExist":
        return not given
    if operator == "In":
        return any(value in wanted for value in given)
    return not given or any(value not in wanted for value in given)


def is_terminating(pod: Object) -> bool:
    """Whether a pod has a deadline."""
    deadline = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return bool(deadline is not None and deadline >= 0)


def pod_in_scope(scope: Scope, pod: Object) -> bool:
    """Whether a pod falls under a scope."""
    name = scope.get("scopeName")
    if name in ("Terminating", "NotTerminating"):
        return is_terminating(pod) is (name == "Terminating")
    if name in ("BestEffort", "NotBestEffort"):
        best_effort: bool = qos_of(pod) == BEST_EFFORT
        return best_effort is (name == "BestEffort")
    if name == "PriorityClass":
        own = (pod.get("spec") or {}).get("priorityClassName")
        return selects(scope, [own] if own else [])
    if name == "CrossNamespacePodAffinity":
        return _crosses_namespaces(pod)
    return False


def _crosses_namespaces(pod: Object) -> bool:
    affinity = (pod.get("spec") or {}).get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for field in _TERMS:
            for term in rules.get(field) or ():
                term = term.get("podAffinityTerm", term)
                if term.get("namespaces") or term.get("namespaceSelector") is not None:
                    return True
    return False


def claim_in_scope(scope: Scope, claim: Object) -> bool:
    """Whether a volume claim falls under a scope."""
    if scope.get("scopeName") != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    classes = (
        (claim.get("spec") or {}).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return selects(scope, {each for each in classes if each})
