"""What makes resource claims wrong: requests for devices, constraints between them and configuration."""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.resource.expressions import check_selector
from pilothouse.apis.resource.formats import (
    check_declared_driver,
    check_declared_full_name,
    check_label,
    declare_limit,
    declare_unique,
)
from pilothouse.machinery import names
from pilothouse.machinery.field_errors import FieldError, Path, invalid, not_supported, required, too_long
from pilothouse.machinery.objects import Object

REQUESTS_LIMIT: Final = 32
_LIST_LIMIT: Final = 32
_ALTERNATIVES_LIMIT: Final = 8
_PARAMETERS_LIMIT: Final = 10 * 1024
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_UNKNOWN_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

RequestNames = dict[str, set[str]]


def request_names(spec: Object) -> RequestNames:
    """The requests of a claim, each with the names of its alternatives."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {r.get("name", ""): {a.get("name", "") for a in r.get("firstAvailable") or ()} for r in requests}


def validate_claim_spec(spec: Object, path: Path, errs: ErrorList, gates: frozenset[str]) -> None:
    """Errors of a claim's spec."""
    claim, where = spec.get("devices") or {}, path.child("devices")
    known = request_names(spec)
    requests = claim.get("requests") or []
    if declare_limit(requests, REQUESTS_LIMIT, where.child("requests"), errs):
        declare_unique(requests, _name, where.child("requests"), "resource.v1.DeviceRequest", errs)
        for position, request in enumerate(requests):
            _validate_request(request, where.child("requests").index(position), errs)
    constraints = claim.get("constraints") or []
    if declare_limit(constraints, _LIST_LIMIT, where.child("constraints"), errs):
        for position, constraint in enumerate(constraints):
            _validate_constraint(constraint, known, where.child("constraints").index(position), errs, gates)
    config = claim.get("config") or []
    if declare_limit(config, _LIST_LIMIT, where.child("config"), errs):
        for position, one in enumerate(config):
            place = where.child("config").index(position)
            validate_request_refs(one.get("requests") or [], known, place.child("requests"), errs)
            validate_configuration(one, place, errs)


def _name(item: Object) -> str:
    return str(item.get("name", ""))


def _validate_request(request: Object, path: Path, errs: ErrorList) -> None:
    check_label(request.get("name", ""), path.child("name"), errs.errors)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        why = "exactly one of `exactly` or `firstAvailable` is required"
        errs.errors.append(required(path, why))
    elif exactly is not None and alternatives:
        why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errs.errors.append(invalid(path, None, why))
    if exactly is not None:
        written = ErrorList() if alternatives else errs
        _validate_class(exactly.get("deviceClassName", ""), path.child("exactly", "deviceClassName"), written.errors)
        _validate_common(exactly, path.child("exactly"), written)
        if written is not errs:
            errs.declared += written.declared
    if alternatives:
        _validate_alternatives(alternatives, path.child("firstAvailable"), errs, only_declared=exactly is not None)


def _validate_alternatives(items: list[Object], path: Path, errs: ErrorList, *, only_declared: bool) -> None:
    if not declare_limit(items, _ALTERNATIVES_LIMIT, path, errs):
        return
    declare_unique(items, _name, path, "resource.v1.DeviceSubRequest", errs)
    written = ErrorList() if only_declared else errs
    for position, item in enumerate(items):
        place = path.index(position)
        check_label(_name(item), place.child("name"), written.errors)
        _validate_class(item.get("deviceClassName", ""), place.child("deviceClassName"), written.declared, "bytes")
        _validate_common(item, place, written)
    if written is not errs:
        errs.declared += written.declared


def _validate_class(name: str, path: Path, errs: list[FieldError], unit: str = "characters") -> None:
    if not name:
        errs.append(required(path))
    else:
        errs += (invalid(path, name, message) for message in names.check_dns1123_subdomain(name, unit))


def _validate_common(request: Object, path: Path, errs: ErrorList) -> None:
    """What requests and alternatives share."""
    validate_selectors(request.get("selectors") or [], path.child("selectors"), errs)
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode == "All":
        if count:
            why = "must not be specified when allocationMode is 'All'"
            errs.errors.append(invalid(path.child("count"), count, why))
    elif mode == "ExactCount":
        if count <= 0:
            errs.errors.append(invalid(path.child("count"), count, "must be greater than zero"))
    elif mode:
        errs.declared.append(not_supported(path.child("allocationMode"), mode, ("All", "ExactCount")))
    else:
        errs.errors.append(not_supported(path.child("allocationMode"), mode, ("All", "ExactCount")))
    for position, toleration in enumerate(request.get("tolerations") or ()):
        validate_toleration(toleration, path.child("tolerations").index(position), errs)


def validate_selectors(selectors: list[Object], path: Path, errs: ErrorList) -> None:
    """Selectors are CEL expressions."""
    if not declare_limit(selectors, _LIST_LIMIT, path, errs):
        return
    for position, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            errs.errors.append(required(path.index(position).child("cel")))
        else:
            check_selector(cel.get("expression", ""), path.index(position).child("cel", "expression"), errs.errors)


def validate_toleration(toleration: Object, path: Path, errs: ErrorList) -> None:
    """A toleration of device taints."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if operator == "Exists" and value:
        errs.errors.append(invalid(path.child("value"), value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errs.errors += (invalid(path.child("value"), value, message) for message in names.check_label_value(value))
    if key:
        errs.declared += (invalid(path.child("key"), key, message) for message in names.check_label_key(key))
    if not operator:
        errs.declared.append(required(path.child("operator")))
    elif operator not in ("Equal", "Exists"):
        errs.declared.append(not_supported(path.child("operator"), operator, ("Equal", "Exists")))
    if effect and effect not in TAINT_EFFECTS:
        errs.declared.append(not_supported(path.child("effect"), effect, TAINT_EFFECTS))


def _validate_constraint(
    constraint: Object, known: RequestNames, path: Path, errs: ErrorList, gates: frozenset[str]
) -> None:
    validate_request_refs(constraint.get("requests") or [], known, path.child("requests"), errs)
    same, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    if same is None and distinct is None and "DRAConsumableCapacity" not in gates:
        errs.errors.append(required(path.child("matchAttribute"), ""))
    elif same is None and distinct is None:
        why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        errs.errors.append(required(path, why))
    if same is not None:
        check_declared_full_name(same, path.child("matchAttribute"), errs.declared)
    if distinct is not None:
        check_declared_full_name(distinct, path.child("distinctAttribute"), errs.declared)


def validate_request_refs(refs: list[str], known: RequestNames, path: Path, errs: ErrorList) -> None:
    """Names of requests, or of requests and alternatives."""
    if not declare_limit(refs, REQUESTS_LIMIT, path, errs):
        return
    declare_unique(refs, str, path, "", errs)
    for position, ref in enumerate(refs):
        validate_request_ref(ref, known, path.index(position), errs.errors)


def validate_request_ref(ref: str, known: RequestNames, path: Path, errs: list[FieldError]) -> None:
    """One reference to a request of the claim."""
    request, slash, alternative = ref.partition("/")
    if "/" in alternative:
        errs.append(invalid(path, ref, _UNKNOWN_REQUEST))
        return
    for part in (request, alternative) if slash else (request,):
        check_label(part, path, errs)
    if request not in known or (slash and alternative not in known[request]):
        errs.append(invalid(path, ref, _UNKNOWN_REQUEST))


def validate_configuration(config: Object, path: Path, errs: ErrorList, *, stored: bool = False) -> None:
    """Parameters that only a driver understands."""
    opaque = config.get("opaque")
    if opaque is None:
        errs.errors.append(required(path.child("opaque")))
        return
    where = path.child("opaque")
    validate_raw(opaque.get("parameters"), where.child("parameters"), _PARAMETERS_LIMIT, errs.errors, stored=stored)
    check_declared_driver(opaque.get("driver", ""), where.child("driver"), errs.declared)


def validate_raw(value: Any, path: Path, limit: int, errs: list[FieldError], *, stored: bool = False) -> None:
    """A JSON object of limited size."""
    if value is None:
        errs.append(required(path))
    elif not stored and len(orjson.dumps(value)) > limit:
        errs.append(too_long(path, "", limit))
    elif not isinstance(value, dict):
        errs.append(invalid(path, "<value omitted>", "must be a valid JSON object"))
