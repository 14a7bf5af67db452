"""ClusterRoles whose rules are gathered from other ClusterRoles, chosen by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.authz.rbac.rules import Rule
from pilothouse.machinery import labels


def aggregate_rules(role: Mapping[str, Any], roles: Iterable[Mapping[str, Any]]) -> list[Rule] | None:
    """The rules an aggregated role should have, each once, roles by name; None if the role is not aggregated."""
    rule = role.get("aggregationRule")
    if rule is None:
        return None
    own_name = role["metadata"]["name"]
    candidates = sorted(roles, key=lambda candidate: str(candidate["metadata"]["name"]))
    gathered: list[Rule] = []
    for described in rule.get("clusterRoleSelectors") or ():
        selector = labels.from_object(described)
        for candidate in candidates:
            metadata = candidate["metadata"]
            if metadata["name"] != own_name and selector.matches(metadata.get("labels") or {}):
                gathered.extend(found for found in candidate.get("rules") or () if found not in gathered)
    return gathered
