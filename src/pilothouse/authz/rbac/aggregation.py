"""ClusterRoles whose rules are gathered from other ClusterRoles, chosen by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.authz.rbac.rules import Rule


def aggregate_rules(role: Mapping[str, Any], roles: Iterable[Mapping[str, Any]]) -> list[Rule] | None:
    """The rules an aggregated role should have, each once, roles by name; None if the role is not aggregated."""
    rule = role.get("aggregationRule")
    if rule is None:
        return None
    own_name = role["metadata"]["name"]
    candidates = sorted(roles, key=lambda candidate: str(candidate["metadata"]["name"]))
    gathered: list[Rule] = []
    for selector in rule.get("clusterRoleSelectors") or ():
        for candidate in candidates:
            metadata = candidate["metadata"]
            if metadata["name"] != own_name and selects(selector, metadata.get("labels") or {}):
                gathered.extend(found for found in candidate.get("rules") or () if found not in gathered)
    return gathered


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an empty one matches everything."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_meets(labels, requirement) for requirement in selector.get("matchExpressions") or ())


def _meets(labels: Mapping[str, str], requirement: Mapping[str, Any]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
