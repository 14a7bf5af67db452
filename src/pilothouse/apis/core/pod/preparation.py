"""What the server adds to a new pod: selectors from label keys, profiles from old annotations, totals of resources."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.pod_spec.affinity import pod_terms_of
from pilothouse.apis.core.pod_spec.amounts import sum_containers
from pilothouse.apis.core.pod_spec.annotations import APP_ARMOR_PREFIX
from pilothouse.apis.core.pod_spec.security import validate_app_armor
from pilothouse.apis.core.pod_spec.traversal import containers_of
from pilothouse.apis.core.pod_spec.warnings import app_armor_of
from pilothouse.apis.core.resource_names import amount, is_huge_page, is_pod_level, may_overcommit
from pilothouse.machinery.field_errors import FieldError, Path
from pilothouse.machinery.objects import Object
from pilothouse.machinery.quantity import Quantity

_NOWHERE: Final = Path()
_MERGED: Final = {"MatchLabelKeysInPodTopologySpread", "MatchLabelKeysInPodTopologySpreadSelectorMerge"}


def gate_scheduling(pod: Object, now: str) -> None:
    """Say in the status that gates hold the pod back."""
    if pod["spec"].get("schedulingGates"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": now,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def extend_selectors(spec: Object, labels: dict[str, str], gates: frozenset[str]) -> None:
    """Turn label keys into selectors of the new pod's own values, in affinities and spread constraints."""
    affinity = spec.get("affinity")
    if affinity:
        for term in pod_terms_of(affinity):
            _extend(term, "matchLabelKeys", "In", labels)
            _extend(term, "mismatchLabelKeys", "NotIn", labels)
    constraints = spec.get("topologySpreadConstraints") or ()
    for constraint in constraints if gates >= _MERGED else ():
        _extend(constraint, "matchLabelKeys", "In", labels)


def _extend(holder: Object, field: str, operator: str, labels: dict[str, str]) -> None:
    keys, selector = holder.get(field), holder.get("labelSelector")
    if keys and selector is not None:
        added = [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
        if added:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]


def adopt_app_armor(pod: Object, warnings: list[str]) -> None:
    """Copy AppArmor profiles from the annotations that older clients send, with a warning each."""
    annotations, spec = pod["metadata"].get("annotations"), pod["spec"]
    if not annotations or (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container in containers_of(spec):
        key = APP_ARMOR_PREFIX + container.get("name", "")
        if key not in annotations or "appArmorProfile" in (container.get("securityContext") or ()):
            continue
        profile = app_armor_of(annotations[key])
        if profile is not None and _is_refused(profile):
            profile = None
        if profile is not None and profile != of_pod:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile
        if profile is None or profile != of_pod:
            why = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            warnings.append(f"metadata.annotations[{key}]: {why}")


def _is_refused(profile: Object) -> bool:
    errs: list[FieldError] = []
    validate_app_armor(profile, _NOWHERE, errs)
    return bool(errs)


def complete_pod_resources(spec: Object, *, only_requests: bool = False) -> None:
    """Fill in what resources of the pod as a whole leave open, from its containers.

    The order matters: limits of huge pages, then requests (which also take over those limits), then limits where every
    container has one, never below the request. Earlier releases did the first two, the second only beside limits.
    """
    resources = spec.get("resources")
    if not resources or not (resources.get("requests") or resources.get("limits")):
        return
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    totals = sum_containers(spec, "limits")
    _limit_huge_pages(requests, limits, totals)
    if limits or not only_requests:
        _complete_requests(spec, requests, limits)
    for name in requests if not only_requests else ():
        if name not in limits and is_pod_level(name) and name in totals and _all_limit(spec, name):
            total = totals[name]
            limits[name] = requests[name] if amount(requests[name]) > total else str(total)
    for kind, amounts in (("requests", requests), ("limits", limits)):
        if amounts:
            resources[kind] = amounts


def _limit_huge_pages(requests: Object, limits: Object, totals: dict[str, Quantity]) -> None:
    for name, total in totals.items():
        if is_huge_page(name) and name not in requests:
            limits.setdefault(name, str(total))


def _complete_requests(spec: Object, requests: Object, limits: Object) -> None:
    for name, total in sum_containers(spec, "requests").items():
        if is_pod_level(name) and may_overcommit(name):
            requests.setdefault(name, str(total))
    for name, limit in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, limit)


def _all_limit(spec: Object, name: str) -> bool:
    return all(name in ((container.get("resources") or {}).get("limits") or ()) for container in containers_of(spec))
