"""What makes policy bindings wrong, and the status of a policy."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.admissionregistration.rules import validate_match_resources, validate_mutating_operations
from pilothouse.apis.conditions import validate_conditions
from pilothouse.apis.faults import Faults
from pilothouse.apis.validating import repeats
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required

Object = dict[str, Any]
_SPEC: Final = Path("spec")
_ACTIONS: Final = ("Audit", "Deny", "Warn")


def validate_validating_binding(obj: Object) -> list[FieldError]:
    """Faults of a validating policy's binding."""
    faults = Faults()
    spec = obj["spec"]
    if not spec.get("policyName"):
        faults.declared.append(required(_SPEC.child("policyName")))
    _validate_common(spec, faults.errors)
    actions = spec.get("validationActions") or []
    path = _SPEC.child("validationActions")
    twice = repeats(actions)
    for position, action in enumerate(actions):
        if action not in _ACTIONS:
            faults.errors.append(not_supported(path.index(position), action, _ACTIONS))
        if position in twice:
            faults.errors.append(duplicate(path.index(position), action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        faults.errors.append(invalid(path, actions, why))
    if not actions:
        faults.declared.append(required(path))
    return faults.listed()


def validate_mutating_binding(obj: Object) -> list[FieldError]:
    """Faults of a mutating policy's binding."""
    errs: list[FieldError] = []
    spec = obj["spec"]
    if not spec.get("policyName"):
        errs.append(required(_SPEC.child("policyName")))
    _validate_common(spec, errs)
    validate_mutating_operations(spec.get("matchResources") or {}, _SPEC.child("matchResources"), errs)
    return errs


def _validate_common(spec: Object, errs: list[FieldError]) -> None:
    name = spec.get("policyName", "")
    if name:
        errs += (invalid(_SPEC.child("policyName"), name, message) for message in names.check_dns1123_subdomain(name))
    if spec.get("paramRef") is not None:
        _validate_param_ref(spec["paramRef"], _SPEC.child("paramRef"), errs)
    validate_match_resources(spec.get("matchResources"), _SPEC.child("matchResources"), errs)


def _validate_param_ref(ref: Object, path: Path, errs: list[FieldError]) -> None:
    name, selector = ref.get("name", ""), ref.get("selector")
    exclusive = "name and selector are mutually exclusive"
    if name:
        errs += (invalid(path.child("name"), name, message) for message in names.check_path_segment_name(name))
        if selector is not None:
            errs.append(forbidden(path.child("name"), exclusive))
    if selector is not None:
        errs += labels.validate_object(selector, path.child("selector"))
        if name:
            errs.append(forbidden(path.child("selector"), exclusive))
    if not name and selector is None:
        errs.append(required(path, "one of name or selector must be specified"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        errs.append(required(path.child("parameterNotFoundAction")))
    elif action not in ("Deny", "Allow"):
        errs.append(not_supported(path.child("parameterNotFoundAction"), action, ("Deny", "Allow")))


def validate_policy_status(obj: Object) -> list[FieldError]:
    """Faults of what type checking reports about a policy."""
    errs: list[FieldError] = []
    status = obj.get("status") or {}
    for position, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = Path("status", "typeChecking", "expressionWarnings").index(position)
        if not warning.get("warning"):
            errs.append(required(path.child("warning")))
        if not warning.get("fieldRef", "").strip():
            errs.append(required(path.child("fieldRef")))
    validate_conditions(status.get("conditions"), Path("status", "conditions"), errs)
    return errs
