"""What makes a claim valid. The spec's rules also hold for claim templates in pods and stateful sets."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.conditions import check_condition_reason
from pilothouse.apis.core.checks import (
    NOT_POSITIVE,
    ZERO,
    check_dns_label,
    check_dns_subdomain,
    check_qualified_name,
    refusals,
)
from pilothouse.apis.core.internal_form import show_change
from pilothouse.apis.core.persistent_volume.strategy import STORAGE_CLASS_ANNOTATION
from pilothouse.apis.core.persistent_volume.validation import VOLUME_MODES, check_access_modes
from pilothouse.apis.core.resource_names import check_quantity, is_native
from pilothouse.apis.metadata import IMMUTABLE
from pilothouse.machinery import labels, quantity
from pilothouse.machinery.field_errors import FieldError, Path, as_json, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

Spec = dict[str, Any]
_SPEC: Final = Path("spec")
_DEFAULT_GROUP: Final = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
_FIXED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_RESIZE_STATUSES: Final = (
    "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible",
    "NodeResizePending",
)  # fmt: skip


def storage_request(spec: Spec) -> str | None:
    """How much storage a claim asks for."""
    request: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return request


def validate_claim_spec(
    path: Path, spec: Spec, *, allow_invalid_values: bool = False, allow_invalid_group: bool = False
) -> list[FieldError]:
    """Errors of a claim's spec; the allowances are for what an older object already had."""
    errs: list[FieldError] = []
    modes = spec.get("accessModes") or []
    if not modes:
        errs.append(required(path.child("accessModes"), "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        where = path.child("selector")
        errs += labels.validate_object(spec["selector"], where, allow_invalid_values=allow_invalid_values)
    errs += check_access_modes(path.child("accessModes"), modes)
    errs += _check_request(path.child("resources").key("storage"), storage_request(spec))
    if spec.get("storageClassName"):
        errs += check_dns_subdomain(path.child("storageClassName"), spec["storageClassName"])
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errs.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    errs += _check_sources(path, spec, allow_invalid_group=allow_invalid_group)
    if spec.get("volumeAttributesClassName"):
        errs += check_dns_subdomain(path.child("volumeAttributesClassName"), spec["volumeAttributesClassName"])
    return errs


def _check_request(path: Path, text: str | None) -> list[FieldError]:
    if text is None:
        return [required(path, "")]
    amount = quantity.parse(text)
    return [invalid(path, str(amount), NOT_POSITIVE)] if amount <= ZERO else []


def _check_sources(path: Path, spec: Spec, *, allow_invalid_group: bool) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    errs: list[FieldError] = []
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            errs += _check_source(path.child(key), given, allow_invalid_group=allow_invalid_group)
    if source is None or reference is None:
        return errs
    # kube-apiserver shows the path's own struct here, which has no visible fields.
    if reference.get("namespace"):
        errs.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errs.append(invalid(path, {}, "must match dataSourceRef"))
    return errs


def _check_source(path: Path, source: dict[str, Any], *, allow_invalid_group: bool) -> list[FieldError]:
    errs = [required(path.child(key), "") for key in ("name", "kind") if not source.get(key)]
    group = source.get("apiGroup") or ""
    if not group and source.get("kind") != "PersistentVolumeClaim":
        errs.append(invalid(path, source.get("kind", ""), _DEFAULT_GROUP))
    if group and not allow_invalid_group:
        errs += check_dns_subdomain(path.child("apiGroup"), group)
    if source.get("namespace"):
        errs += check_dns_label(path.child("namespace"), source["namespace"])
    return errs


def validate_claim(obj: Object, old: Object | None = None) -> list[FieldError]:
    """Errors of a claim by itself; what an older one was allowed stays allowed."""
    before = (old or {}).get("spec") or {}
    sources = (before.get("dataSource") or {}, before.get("dataSourceRef") or {})
    return validate_claim_spec(
        _SPEC,
        obj.get("spec") or {},
        allow_invalid_values=bool(labels.validate_object(before.get("selector"), _SPEC)),
        allow_invalid_group=any(source.get("apiGroup") is not None for source in sources),
    )


def validate_claim_update(obj: Object, old: Object) -> list[FieldError]:
    """Errors of a changed claim: a bound one may grow and change its attributes, nothing else."""
    errs = validate_claim(obj, old)
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    errs += _check_fixed_spec(obj, old, spec.copy(), before.copy())
    size, old_size = _amount(storage_request(spec)), _amount(storage_request(before))
    capacity = _amount(((old.get("status") or {}).get("capacity") or {}).get("storage"))
    if size < old_size and size <= capacity:
        where = Path("spec", "resources", "requests", "storage")
        errs.append(forbidden(where, "field can not be less than status.capacity"))
    if spec.get("volumeMode") != before.get("volumeMode"):
        errs.append(invalid(Path("volumeMode"), as_json(spec.get("volumeMode")), IMMUTABLE))
    return errs + _check_attributes(spec, before, old)


def _amount(text: str | None) -> quantity.Quantity:
    return quantity.parse(text) if text else ZERO


def _check_fixed_spec(obj: Object, old: Object, spec: Spec, before: Spec) -> list[FieldError]:
    """Compare the specs but for what may change. Both are copies that the allowed changes are made in."""
    errs: list[FieldError] = []
    if not before.get("volumeName") and spec.get("volumeName"):
        before["volumeName"] = spec["volumeName"]
    annotated = (obj["metadata"].get("annotations") or {}).get(STORAGE_CLASS_ANNOTATION)
    old_annotated = (old["metadata"].get("annotations") or {}).get(STORAGE_CLASS_ANNOTATION)
    name = spec.get("storageClassName")
    newly_named = before.get("storageClassName") is None and name is not None
    if newly_named and old_annotated == name and annotated in (None, old_annotated):
        del spec["storageClassName"]
    else:
        if (annotated or "") != (old_annotated or ""):
            where = Path("metadata", "annotations", STORAGE_CLASS_ANNOTATION)
            errs.append(invalid(where, annotated or "", IMMUTABLE))
        if newly_named and old_annotated in (None, name):
            del spec["storageClassName"]
    if (obj.get("status") or {}).get("phase") == "Bound":
        _take_bound_changes(spec, before)
    if not _same_spec(spec, before):
        change = show_change("core.v1.PersistentVolumeClaimSpec", before, spec)
        errs.append(forbidden(_SPEC, f"{_FIXED}\n{change}"))
    return errs


def _take_bound_changes(spec: Spec, before: Spec) -> None:
    resources = spec.get("resources", {})
    if as_given(resources, "requests") is not None:
        requests = {**as_given(resources, "requests"), "storage": storage_request(before) or "0"}
        spec["resources"] = resources = resources.copy()
        resources["requests"] = requests
    if before.get("volumeAttributesClassName") is None:
        spec.pop("volumeAttributesClassName", None)
    else:
        spec["volumeAttributesClassName"] = before["volumeAttributesClassName"]


def _same_spec(spec: Spec, before: Spec) -> bool:
    """Equal, however amounts are written."""
    if spec == before:
        return True
    rest = [{key: value for key, value in each.items() if key != "resources"} for each in (spec, before)]
    if rest[0] != rest[1]:
        return False
    amounts = [
        {
            (kind, name): quantity.parse(text)
            for kind, given in (each.get("resources") or {}).items()
            for name, text in (given or {}).items()
        }
        for each in (spec, before)
    ]
    return amounts[0] == amounts[1]


def _check_attributes(spec: Spec, before: Spec, old: Object) -> list[FieldError]:
    """A class of attributes that is in force may be replaced but not taken away."""
    wanted = spec.get("volumeAttributesClassName")
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if wanted == before.get("volumeAttributesClassName") or current is None or wanted:
        return []
    state = "nil" if wanted is None else "empty string"
    why = f"update to {state} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden(Path("spec", "volumeAttributesClassName"), why)]


def validate_claim_status(obj: Object) -> list[FieldError]:
    """Errors of a claim whose status changed."""
    errs: list[FieldError] = []
    if not obj["metadata"].get("resourceVersion"):
        errs.append(required(Path("resourceVersion"), ""))
    if not (obj.get("spec") or {}).get("accessModes"):
        errs.append(required(Path("Spec", "accessModes"), ""))
    status = obj.get("status") or {}
    for name, text in (status.get("capacity") or {}).items():
        errs += _check_basic(Path("status", "capacity").key(name), text)
    for at, condition in enumerate((status.get("healthStatus") or {}).get("healthConditions") or ()):
        reason = condition.get("reason")
        if reason:
            where = Path("status", "healthStatus", "healthConditions").index(at).child("reason")
            errs += refusals(where, reason, check_condition_reason(reason))
    path = Path("status", "allocatedResourceStatuses")
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        errs += _check_allocated_name(path, name)
        if state not in _RESIZE_STATUSES:
            errs.append(not_supported(path, name, _RESIZE_STATUSES))
    path = Path("status", "allocatedResources")
    for name, text in (status.get("allocatedResources") or {}).items():
        wrong = _check_allocated_name(path, name) or _check_basic(path.key(name), text)
        errs += wrong or check_quantity(path.key(name), "storage", text)
    return errs


def _check_basic(path: Path, text: str) -> list[FieldError]:
    amount = quantity.parse(text).value()
    return [invalid(path, amount, "must be a valid resource quantity")] if amount < 0 else []


def _check_allocated_name(path: Path, name: str) -> list[FieldError]:
    errs = check_qualified_name(path, name)
    if errs or not is_native(name) or name == "storage":
        return errs
    return [not_supported(path, name, ("storage",))]
