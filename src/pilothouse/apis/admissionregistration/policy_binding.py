"""Webhook configurations, admission policies and their bindings.

Whether the author may read the parameters that a policy or binding refers to is decided by authorization, not here.
"""

from __future__ import annotations

from typing import Final

from pilothouse.apis.admissionregistration.policy import default_match
from pilothouse.apis.admissionregistration.registration import RegistrationStrategy
from pilothouse.apis.admissionregistration.rules import validate_match_resources, validate_mutating_operations
from pilothouse.apis.columns import AGE, NAME
from pilothouse.apis.error_lists import ErrorList
from pilothouse.apis.strategy import Column
from pilothouse.apis.validation import repeats
from pilothouse.machinery import labels, names
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_ACTIONS: Final = ("Audit", "Deny", "Warn")


def validate_validating_binding(obj: Object) -> list[FieldError]:
    """Errors of a validating policy's binding."""
    errs = ErrorList()
    spec = obj["spec"]
    if not spec.get("policyName"):
        errs.declared.append(required(_SPEC.child("policyName")))
    _validate_common(spec, errs.errors)
    actions = spec.get("validationActions") or []
    path = _SPEC.child("validationActions")
    twice = repeats(actions)
    for position, action in enumerate(actions):
        if action not in _ACTIONS:
            errs.errors.append(not_supported(path.index(position), action, _ACTIONS))
        if position in twice:
            errs.errors.append(duplicate(path.index(position), action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errs.errors.append(invalid(path, actions, why))
    if not actions:
        errs.declared.append(required(path))
    return errs.listed()


def validate_mutating_binding(obj: Object) -> list[FieldError]:
    """Errors of a mutating policy's binding."""
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


def _param_ref(obj: Object) -> str:
    ref = obj["spec"].get("paramRef")
    if ref is None:
        return "<unset>"
    if ref.get("name"):
        return f"{ref.get('namespace') or '*'}/{ref['name']}"
    return "<unset>" if ref.get("selector") is None else _show_selector(ref["selector"])


def _show_selector(selector: Object) -> str:
    """A selector as Go prints the protobuf message."""
    pairs = selector.get("matchLabels") or {}
    shown = "".join(f"{key}: {pairs[key]}," for key in sorted(pairs))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{shown}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )


_BINDING_COLUMNS: Final = (
    NAME,
    Column(
        "PolicyName",
        "string",
        lambda o: o["spec"].get("policyName", ""),
        description="PolicyName indicates the policy definition which the policy binding binded to",
    ),
    Column(
        "ParamRef",
        "string",
        _param_ref,
        description="ParamRef indicates the param resource which sets the configuration param",
    ),
    AGE,
)


class ValidatingBindingStrategy(RegistrationStrategy):
    """Bindings of validating policies."""

    columns = _BINDING_COLUMNS

    def default(self, obj: Object) -> None:
        default_match(obj["spec"].get("matchResources"))

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_validating_binding(obj)


class MutatingBindingStrategy(ValidatingBindingStrategy):
    """Bindings of mutating policies."""

    def errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        return validate_mutating_binding(obj)
