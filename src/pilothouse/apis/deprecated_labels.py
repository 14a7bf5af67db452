"""Node labels that have newer names, and warnings about selectors of nodes that use them."""

from __future__ import annotations

from typing import Any, Final

DEPRECATED: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def topology_warnings(terms: Any) -> list[str]:
    """For a storage class's allowed topologies."""
    return [
        f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {DEPRECATED[expression['key']]}"
        for i, term in enumerate(terms or ())
        for j, expression in enumerate(term.get("matchLabelExpressions") or ())
        if expression.get("key") in DEPRECATED
    ]


def selector_warnings(selector: dict[str, Any] | None, field: str) -> list[str]:
    """For a label selector of nodes; ``field`` is where it stands."""
    selector = selector or {}
    warnings = [
        f"{field}.matchExpressions[{i}].key: {expression['key']} is {DEPRECATED[expression['key']]}"
        for i, expression in enumerate(selector.get("matchExpressions") or ())
        if expression.get("key") in DEPRECATED
    ]
    found = [key for key in selector.get("matchLabels") or () if key in DEPRECATED]
    warnings += (f"{field}.matchLabels.{key}: {DEPRECATED[key]}" for key in found)
    return warnings
