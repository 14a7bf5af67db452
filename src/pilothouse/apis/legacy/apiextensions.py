"""Definitions through apiextensions.k8s.io/v1beta1: without schemas, or with any, and keeping what nobody described.

What all versions share stands once beside them, and must not be repeated in them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pilothouse.apis.apiextensions.custom_resource_definition.internal_form import show_version
from pilothouse.apis.apiextensions.custom_resource_definition.stored_version import from_v1beta1, to_v1beta1
from pilothouse.apis.apiextensions.custom_resource_definition.strategy import DefinitionStrategy
from pilothouse.apis.legacy.older import Older
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid
from pilothouse.machinery.objects import Object

_SPEC: Final = Path("spec")
_SHARED: Final = (
    ("validation", "schema", "schemas", "validation"),
    ("subresources", "subresources", "subresources", "subresources"),
    ("additionalPrinterColumns",) * 4,
)
"""The field at the top, that of a version, and what messages call them."""


class UnstructuredDefinitions(DefinitionStrategy):
    """Definitions whose schemas need not be structural while unknown fields are kept."""

    structured: ClassVar[bool] = False


def default_definition(obj: Object) -> None:
    """Namespaced, keeping unknown fields; the one version among the versions, and the first of them as the version."""
    spec = obj["spec"]
    spec["scope"] = spec.get("scope") or "Namespaced"
    if spec.get("preserveUnknownFields") is None:
        spec["preserveUnknownFields"] = True
    versions, first = spec.get("versions") or [], spec.get("version")
    if not versions and first:
        spec["versions"] = [{"name": first, "served": True, "storage": True}]
    elif versions and not first:
        spec["version"] = versions[0].get("name", "")
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") == "Webhook" and not conversion.get("conversionReviewVersions"):
        conversion["conversionReviewVersions"] = ["v1beta1"]


def check_definition(obj: Object) -> list[FieldError]:
    """Errors that only this form can have."""
    spec = obj["spec"]
    versions: list[Any] = spec.get("versions") or []
    errs: list[FieldError] = []
    if versions and spec.get("version") != versions[0].get("name"):
        why = "must match the first version in spec.versions"
        errs.append(invalid(_SPEC.child("version"), spec.get("version", ""), why))
    for top, own, many, instead in _SHARED:
        given = [version.get(own) for version in versions]
        if spec.get(top) and any(given):
            errs.append(forbidden(_SPEC.child(top), f"top-level and per-version {many} are mutually exclusive"))
        if given and all(given) and all(each == given[0] for each in given):
            instead = f"(top-level {instead} should be used instead)"
            why = f"per-version {many} may not all be set to identical values {instead}"
            errs.append(invalid(_SPEC.child("versions"), [show_version(version) for version in versions], why))
    return errs


OLDER: dict[tuple[str, str], Older] = {
    ("v1beta1", "customresourcedefinitions"): Older(
        from_v1beta1, to_v1beta1, default_definition, UnstructuredDefinitions, check=check_definition
    )
}
