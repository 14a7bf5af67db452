"""The flow-control objects that every server has: their specs are fixed, but for what the exempt level lends."""

from __future__ import annotations

from typing import Any, Final

_EVERYTHING: Final = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}


def _group(name: str) -> dict[str, Any]:
    return {"kind": "Group", "group": {"name": name}}


FLOW_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": [{"subjects": [_group("system:masters")], **_EVERYTHING}],
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [_group("system:unauthenticated"), _group("system:authenticated")], **_EVERYTHING}],
    },
}
PRIORITY_LEVELS: Final[dict[str, dict[str, Any]]] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}, "lendablePercent": 0},
    },
}
