"""Conditions that follow from a definition alone: it is established, and approved if its group needs that."""

from __future__ import annotations

from pilothouse.apis.apiextensions.custom_resource_definition.approval import approval_of, is_protected
from pilothouse.apis.apiextensions.custom_resource_definition.definitions import (
    API_APPROVED,
    ESTABLISHED,
    NAMES_ACCEPTED,
    NON_STRUCTURAL,
    condition,
    is_true,
    remove_condition,
    set_condition,
)
from pilothouse.machinery.field_errors import Path, aggregate, invalid
from pilothouse.machinery.objects import Object


def establish(crd: Object, now: str) -> bool:
    """Establish a definition with accepted names and a sound webhook; whether that changed anything."""
    if crd["metadata"].get("deletionTimestamp") or not is_true(crd, NAMES_ACCEPTED) or is_true(crd, ESTABLISHED):
        return False
    status, reason, message = "True", "InitialNamesAccepted", "the initial names have been accepted"
    if _converts_badly(crd["spec"]):
        status, reason, message = "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"
    return _set(crd, {"type": ESTABLISHED, "status": status, "reason": reason, "message": message}, now)


def _converts_badly(spec: Object) -> bool:
    if not (spec.get("conversion") or {}).get("webhook"):
        return False
    from pilothouse.apis.apiextensions.custom_resource_definition.validation import has_bad_bundle

    return has_bad_bundle(spec)


def _set(crd: Object, new: Object, now: str) -> bool:
    known = condition(crd, new["type"])
    if known is not None and all(known.get(key) == value for key, value in new.items()):
        return False
    set_condition(crd, new, now)
    return True


def set_structure(crd: Object, now: str) -> bool:
    """Set the condition of a definition that is not structural; whether that changed anything."""
    known, message = condition(crd, NON_STRUCTURAL), structure_message(crd["spec"])
    if not message:
        if known is not None:
            remove_condition(crd, NON_STRUCTURAL)
        return known is not None
    return _set(crd, {"type": NON_STRUCTURAL, "status": "True", "reason": "Violations", "message": message}, now)


def structure_message(spec: Object) -> str:
    """What keeps a definition, made by an old version, from being structural; empty where nothing does.

    Today's version lets only structural ones pass, so where unknown fields are dropped there is nothing to look for.
    """
    if not spec.get("preserveUnknownFields"):
        return ""
    from pilothouse.apis.apiextensions.custom_resource_definition.structural import structural_errors, unsupported

    errs = [invalid(Path("spec", "preserveUnknownFields"), True, "must be false")]
    for at, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None and not unsupported(schema):
            errs += structural_errors(schema, Path("spec", "versions").index(at).child("schema", "openAPIV3Schema"))
    return aggregate(str(error) for error in errs)


def set_approval(crd: Object, now: str) -> bool:
    """Set the approval condition of a definition in a protected group; whether that changed anything."""
    known = condition(crd, API_APPROVED)
    if not is_protected(crd["spec"]["group"]):
        if known is not None:
            remove_condition(crd, API_APPROVED)
        return known is not None
    reason, message = approval_of(crd["metadata"].get("annotations"))
    status = "True" if reason == "ApprovedAnnotation" else "False"
    return _set(crd, {"type": API_APPROVED, "status": status, "reason": reason, "message": message}, now)
