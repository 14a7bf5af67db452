"""The roles and bindings that every cluster has, and how they are brought back in line at every start.

Reconciling only adds: what is missing in a role or binding comes back, what users added stays. An object whose
annotation ``rbac.authorization.kubernetes.io/autoupdate`` is ``false`` is left alone. Pure functions; the caller
reads and writes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

import orjson

from pilothouse.authz.rbac.coverage import rules_covered
from pilothouse.authz.rbac.rules import Rule
from pilothouse.machinery.objects import Object

AUTO_UPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
RESOURCES: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")


_METADATA: Final[Object] = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {AUTO_UPDATE: "true"},
}


def _rules(*rules: tuple[str, str, tuple[str, ...]]) -> list[Object]:
    return [{"apiGroups": [each], "resources": [resource], "verbs": list(verbs)} for each, resource, verbs in rules]


def _controller_role(account: str, *rules: tuple[str, str, tuple[str, ...]]) -> dict[str, list[Object]]:
    """The role of a controller and its binding; rules are group, resource and verbs."""
    name, group = f"system:controller:{account}", "rbac.authorization.k8s.io"
    kinds = {"apiVersion": f"{group}/v1", "metadata": {"name": name, **_METADATA}}
    allowed = _rules(*rules)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return {
        "clusterroles": [{**kinds, "kind": "ClusterRole", "rules": allowed}],
        "clusterrolebindings": [{**kinds, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}],
    }


_READ: Final = ("get", "list", "watch")
_GATED: Final = {
    "DRAResourcePoolStatus": _controller_role(
        "resourcepoolstatusrequest-controller",
        ("resource.k8s.io", "resourcepoolstatusrequests", ("delete", *_READ)),
        ("resource.k8s.io", "resourcepoolstatusrequests/status", ("patch", "update")),
        ("resource.k8s.io", "resourceslices", _READ),
        ("resource.k8s.io", "resourceclaims", _READ),
        ("resource.k8s.io", "devicetaintrules", _READ),
        ("", "events", ("create", "patch", "update")),
        ("events.k8s.io", "events", ("create", "patch", "update")),
    ),
    "GenericWorkload": _controller_role(
        "podgroup-protection-controller",
        ("scheduling.k8s.io", "podgroups", ("get", "list", "update", "watch")),
        ("", "pods", ("get", "list", "watch")),
    ),
}
"""What there is only while a feature is on."""
_GATED_RULES: Final = {
    "GenericWorkload": {
        "system:kube-scheduler": (
            ("scheduling.k8s.io", "podgroups", _READ),
            ("scheduling.k8s.io", "podgroups/status", ("patch", "update")),
        )
    },
    "DRAWorkloadResourceClaims": {
        "system:controller:resource-claim-controller": (
            ("scheduling.k8s.io", "podgroups", _READ),
            ("scheduling.k8s.io", "podgroups/status", ("patch", "update")),
        )
    },
}
"""Rules that roles have besides while a feature is on."""


class Change(NamedTuple):
    """What to write. ``recreate`` means: delete the existing object by its uid, then create this one."""

    operation: Literal["create", "update", "recreate"]
    object: Object


@cache
def _policy() -> dict[str, list[Object]]:
    data = Path(__file__).with_suffix(".json").read_bytes()
    policy: dict[str, list[Object]] = orjson.loads(data)
    return policy


def load(resource: str, gates: frozenset[str] = frozenset()) -> list[Object]:
    """The wanted objects of a resource, in the order they are to be made. Not to be changed by the caller."""
    gated = [each for gate, objects in _GATED.items() if gate in gates for each in objects.get(resource, ())]
    wanted = _policy()[resource] + gated if gated else _policy()[resource]
    more = {
        name: [*(rules or ()), *_rules(*roles[name])]
        for gate, roles in _GATED_RULES.items()
        if gate in gates and resource == "clusterroles"
        for name, rules in ((each["metadata"]["name"], each["rules"]) for each in wanted)
        if name in roles
    }
    return [{**each, "rules": more.get(each["metadata"]["name"], each["rules"])} for each in wanted] if more else wanted


def reconcile(existing: Object | None, wanted: Object) -> Change | None:
    """What has to be written to bring an object in line; None if nothing."""
    if existing is None:
        return Change("create", wanted)
    if (existing["metadata"].get("annotations") or {}).get(AUTO_UPDATE) == "false":
        return None
    if "roleRef" in wanted and existing.get("roleRef") != wanted["roleRef"]:
        return Change("recreate", wanted)
    merged = {**existing, "metadata": _merge_metadata(existing["metadata"], wanted["metadata"])}
    if "roleRef" in wanted:
        _add_subjects(merged, wanted)
    else:
        _add_rules(merged, wanted)
        _add_selectors(merged, wanted)
    return None if merged == existing else Change("update", merged)


def _merge_metadata(existing: Object, wanted: Object) -> Object:
    merged = dict(existing)
    for field in ("annotations", "labels"):
        values = {**(wanted.get(field) or {}), **(existing.get(field) or {})}
        if values != (existing.get(field) or {}):
            merged[field] = values
    return merged


def _add_rules(merged: Object, wanted: Object) -> None:
    existing: list[Rule] = merged.get("rules") or []
    missing = rules_covered(existing, (rule for rule in wanted.get("rules") or [] if rule not in existing))
    if missing:
        merged["rules"] = existing + missing


def _add_selectors(merged: Object, wanted: Object) -> None:
    rule = wanted.get("aggregationRule")
    if rule is None:
        merged.pop("aggregationRule", None)
        return
    existing = (merged.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
    missing = [selector for selector in rule.get("clusterRoleSelectors") or [] if selector not in existing]
    if missing:
        merged["aggregationRule"] = {"clusterRoleSelectors": existing + missing}


def _add_subjects(merged: Object, wanted: Object) -> None:
    existing = merged.get("subjects") or []
    missing = [subject for subject in wanted.get("subjects") or [] if subject not in existing]
    if missing:
        merged["subjects"] = existing + missing
