"""Disruption budgets through policy/v1beta1, where an empty selector selects nothing instead of everything."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.legacy.older import Older
from pilothouse.apis.legacy.pod_security_policy import PodSecurityPolicyStrategy
from pilothouse.machinery.objects import Object

_LABEL: Final = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_NONE: Final = {"matchExpressions": [{"key": _LABEL, "operator": "Exists"}]}
_ALL: Final = {"matchExpressions": [{"key": _LABEL, "operator": "DoesNotExist"}]}


def from_v1beta1(obj: Object) -> Object:
    """As v1 has it."""
    return _selecting(obj, _NONE, _ALL)


def to_v1beta1(obj: Object) -> Object:
    """As v1beta1 has it."""
    return _selecting(obj, _ALL, _NONE)


def _selecting(obj: Object, shown: Any, meant: Any) -> Object:
    """With ``shown`` for an empty selector, and an empty selector for what it is ``meant`` to be."""
    selector = obj["spec"].get("selector")
    if selector is None:
        return obj
    given = {name: value for name, value in selector.items() if value}
    made = shown if not given else {} if given == meant else selector
    return {**obj, "spec": {**obj["spec"], "selector": made}}


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "poddisruptionbudgets"): Older(from_v1beta1, to_v1beta1),
    ("v1beta1", "podsecuritypolicies"): Older(strategy=PodSecurityPolicyStrategy),
}
