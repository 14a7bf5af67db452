"""What the objects of a namespace use of what a quota names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pilothouse.admission.quota.evaluators import Evaluator, Scope
from pilothouse.apis.core.pod_spec.amounts import Amounts
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import ZERO


def usage_of(
    evaluator: Evaluator, objects: Iterable[Object], namespace: str, names: Collection[str], scopes: Iterable[Scope]
) -> Amounts:
    """What the objects of one kind use of the names that speak of it; an object counts if it is in every scope."""
    wanted, scopes = evaluator.matching(names), list(scopes)
    used: Amounts = dict.fromkeys(wanted, ZERO)
    for obj in objects:
        if all(evaluator.in_scope(scope, obj) for scope in scopes):
            for name, quantity in evaluator.usage(obj, namespace).items():
                if name in used:
                    used[name] += quantity
    return used


def has_changed(evaluator: Evaluator, old: Object, new: Object, scopes: Iterable[Scope]) -> bool:
    """Whether a change of an object can change what is used."""
    namespace = new["metadata"]["namespace"]
    if any(evaluator.in_scope(scope, old) != evaluator.in_scope(scope, new) for scope in scopes):
        return True
    return evaluator.usage(old, namespace) != evaluator.usage(new, namespace)
