"""The roles and bindings that every cluster has, and how they are brought back in line at every start.

Reconciling only adds: what is missing in a role or binding comes back, what users added stays. An object whose
annotation ``rbac.authorization.kubernetes.io/autoupdate`` is ``false`` is left alone. Pure functions; the caller
reads and writes.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def _rule(groups: str, resources: str, verbs: str) -> Object:
    """A rule; several of a part are divided by commas."""
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}


def _controller_role(account: str, *rules: Object) -> dict[str, list[Object]]:
    """The role of a controller and its binding."""
    name, group = f"system:controller:{account}", "rbac.authorization.k8s.io"
    kinds = {"apiVersion": f"{group}/v1", "metadata": {"name": name, **_METADATA}}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return {
        "clusterroles": [{**kinds, "kind": "ClusterRole", "rules": list(rules)}],
        "clusterrolebindings": [{**kinds, "kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": reference}],
    }


class _GatedRules(NamedTuple):
    """Rules that a role has besides while a feature is on."""

    gate: str
    role: str
    rules: tuple[Object, ...]
    after: str = ""
    """The resource of the rule they come after; the last one where nothing is said."""


_READ: Final = "get,list,watch"
_WRITE: Final = "create,delete,deletecollection,patch,update"
_UPDATE: Final = "patch,update"
_SCHEDULING: Final = "scheduling.k8s.io"
_GATED: Final = {
    "DRAResourcePoolStatus": _controller_role(
        "resourcepoolstatusrequest-controller",
        _rule("resource.k8s.io", "resourcepoolstatusrequests", f"delete,{_READ}"),
        _rule("resource.k8s.io", "resourcepoolstatusrequests/status", _UPDATE),
        _rule("resource.k8s.io", "resourceslices", _READ),
        _rule("resource.k8s.io", "resourceclaims", _READ),
        _rule("resource.k8s.io", "devicetaintrules", _READ),
        _rule(",events.k8s.io", "events", f"create,{_UPDATE}"),
    ),
    "GenericWorkload": _controller_role(
        "podgroup-protection-controller",
        _rule(_SCHEDULING, "podgroups", "get,list,update,watch"),
        _rule("", "pods", _READ),
    ),
    "StorageVersionAPI": _controller_role(
        "storage-version-garbage-collector",
        _rule("coordination.k8s.io", "leases", _READ),
        _rule("internal.apiserver.k8s.io", "storageversions", f"delete,get,list,{_UPDATE},watch"),
        _rule("internal.apiserver.k8s.io", "storageversions/status", f"get,{_UPDATE}"),
    ),
}
"""What there is only while a feature is on."""
_GATED_RULES: Final = (
    _GatedRules(
        "GenericWorkload",
        "system:aggregate-to-edit",
        (_rule(_SCHEDULING, "podgroups,workloads", _WRITE),),
    ),
    _GatedRules(
        "GenericWorkload",
        "system:aggregate-to-view",
        (_rule(_SCHEDULING, "podgroups,podgroups/status,workloads", _READ),),
    ),
    _GatedRules(
        "GenericWorkload",
        "system:kube-scheduler",
        (_rule(_SCHEDULING, "podgroups", _READ), _rule(_SCHEDULING, "podgroups/status", _UPDATE)),
    ),
    _GatedRules(
        "DRAWorkloadResourceClaims",
        "system:controller:resource-claim-controller",
        (_rule(_SCHEDULING, "podgroups", _READ), _rule(_SCHEDULING, "podgroups/status", _UPDATE)),
        after="events",
    ),
    _GatedRules(
        "CompositePodGroup",
        "system:aggregate-to-edit",
        (_rule(_SCHEDULING, "compositepodgroups", _WRITE),),
    ),
    _GatedRules(
        "CompositePodGroup",
        "system:aggregate-to-view",
        (_rule(_SCHEDULING, "compositepodgroups,compositepodgroups/status", _READ),),
    ),
    _GatedRules(
        "CompositePodGroup",
        "system:kube-scheduler",
        (_rule(_SCHEDULING, "compositepodgroups", _READ), _rule(_SCHEDULING, "compositepodgroups/status", _UPDATE)),
    ),
    _GatedRules(
        "EvictionRequestAPI",
        "system:aggregate-to-edit",
        (_rule("lifecycle.k8s.io", "evictionrequests", _WRITE),),
    ),
    _GatedRules(
        "EvictionRequestAPI",
        "system:aggregate-to-view",
        (_rule("lifecycle.k8s.io", "evictionrequests,evictions", _READ),),
    ),
    _GatedRules(
        "WorkloadWithJob",
        "system:controller:job-controller",
        (_rule(_SCHEDULING, "podgroups,workloads", f"create,get,list,{_UPDATE},watch"),),
    ),
    _GatedRules(
        "CSIVolumeHealth",
        "system:node",
        (_rule("storage.k8s.io", "csinodes/status", f"get,{_UPDATE}"),),
        after="csinodes",
    ),
)
"""In the order in which they come to their roles."""


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
    more = [each for each in _GATED_RULES if each.gate in gates] if resource == "clusterroles" else ()
    return [_with_rules(each, more) for each in wanted] if more else wanted


def _with_rules(role: Object, gated: Sequence[_GatedRules]) -> Object:
    rules = list(role["rules"] or ())
    for each in gated:
        if each.role == role["metadata"]["name"]:
            places = (at for at, rule in enumerate(rules, 1) if each.after in rule.get("resources", ()))
            at = next(places, len(rules))
            rules[at:at] = each.rules
    return {**role, "rules": rules} if rules else role


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
