"""What a pod's status tells about resource claims and volumes where features that are off by default report it.

Such fields are there only while their feature is on, or because it once was.
"""

from __future__ import annotations

from pilothouse.apis.conditions import check_condition_reason
from pilothouse.apis.core.checks import refusals
from pilothouse.apis.core.resource_names import is_pod_level
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_found
from pilothouse.machinery.objects import Object

_BAD_NAME = "must be a node allocatable resource name"
_NEGATIVE = "must be non-negative"


def validate_node_claims(status: Object, spec: Object, path: Path, errs: list[FieldError]) -> None:
    """Claims that take from what the node itself has: each is one of the pod's."""
    holders = (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    known = {claim["resourceClaimName"] for claim in holders if claim.get("resourceClaimName") is not None}
    for position, claim in enumerate(status.get("nodeAllocatableResourceClaimStatuses") or ()):
        where, name = path.index(position), claim.get("resourceClaimName", "")
        if not name:
            continue
        if name not in known:
            errs.append(invalid(where.child("resourceClaimName"), name, "no mapping found in pod reference"))
        for at, item in enumerate(claim.get("mapping") or ()):
            _validate_amounts(item, ("quantity",), where.child("mapping").index(at), errs)
        for at, item in enumerate(claim.get("overhead") or ()):
            _validate_overhead(item, where.child("overhead").index(at), errs)


def _validate_overhead(item: Object, path: Path, errs: list[FieldError]) -> None:
    amounts = ("perPod", "perContainer")
    _validate_amounts(item, (), path, errs)
    if all(item.get(name) is None for name in amounts):
        errs.append(invalid(path, "", "at least one of perPod or perContainer must be set"))
    errs += (invalid(path.child(name), item[name], _NEGATIVE) for name in amounts if _is_negative(item.get(name)))


def _validate_amounts(item: Object, amounts: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    if not is_pod_level(item.get("name", "")):
        errs.append(invalid(path.child("name"), item.get("name", ""), _BAD_NAME))
    errs += (invalid(path.child(name), item[name], _NEGATIVE) for name in amounts if _is_negative(item.get(name)))


def _is_negative(text: str | None) -> bool:
    return text is not None and text.startswith("-")


def validate_volume_health(reports: list[Object], spec: Object, path: Path, errs: list[FieldError]) -> None:
    """How the pod's volumes fare: each report is about one of them."""
    volumes = {volume.get("name", "") for volume in spec.get("volumes") or ()}
    for position, report in enumerate(reports):
        where, name = path.index(position), report.get("name", "")
        if name and name not in volumes:
            errs.append(not_found(where.child("name"), name))
        for at, condition in enumerate(report.get("healthConditions") or ()):
            if reason := condition.get("reason"):
                shown = where.child("healthConditions").index(at).child("reason")
                errs += refusals(shown, reason, check_condition_reason(reason))
