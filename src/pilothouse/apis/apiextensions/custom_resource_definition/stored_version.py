"""Definitions in v1beta1, the version that kube-apiserver keeps them in and nobody serves any more.

There the first version is named a second time, what all versions agree on stands once beside them, and a webhook is
described in the conversion itself.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.objects import Object

_SHARED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
_ORDER: Final = (
    "group", "version", "names", "scope", "validation", "subresources", "versions", "additionalPrinterColumns",
    "selectableFields", "conversion", "preserveUnknownFields",
)  # fmt: skip


def to_v1beta1(obj: Object) -> Object:
    """A definition of v1, its fields in order, as it is kept."""
    spec: dict[str, Any] = dict(obj["spec"])
    versions = [dict(version) for version in spec.get("versions") or ()]
    if versions:
        spec["version"] = versions[0]["name"]
    for version in versions:
        if version.get("additionalPrinterColumns"):
            version["additionalPrinterColumns"] = [_old_column(c) for c in version["additionalPrinterColumns"]]
    for name, shared in _SHARED.items():
        values = [version.get(name) for version in versions]
        if values and all(value == values[0] for value in values):
            if values[0] is not None:
                spec[shared] = values[0]
            for version in versions:
                version.pop(name, None)
    spec["versions"] = versions
    if spec.get("conversion"):
        spec["conversion"] = _old_conversion(spec["conversion"])
    spec["preserveUnknownFields"] = spec.get("preserveUnknownFields", False)
    return {**obj, "spec": {name: spec[name] for name in _ORDER if name in spec}}


def from_v1beta1(obj: Object) -> Object:
    """A kept definition, in v1. Handles what old releases wrote before there were several versions."""
    spec: dict[str, Any] = dict(obj["spec"])
    first = spec.pop("version", "")
    versions = [dict(version) for version in spec.get("versions") or ()]
    if not versions and first:
        versions = [{"name": first, "served": True, "storage": True}]
    for name, shared in _SHARED.items():
        value = spec.pop(shared, None)
        if value is not None:
            for version in versions:
                version[name] = value
    for version in versions:
        if version.get("additionalPrinterColumns"):
            version["additionalPrinterColumns"] = [_new_column(c) for c in version["additionalPrinterColumns"]]
    spec["versions"] = versions
    spec["conversion"] = _new_conversion(spec.get("conversion") or {"strategy": "None"})
    # In v1beta1 the absent one means true.
    if not spec.setdefault("preserveUnknownFields", True):
        del spec["preserveUnknownFields"]
    return {**obj, "spec": spec}


def _old_column(column: dict[str, Any]) -> dict[str, Any]:
    return {("JSONPath" if name == "jsonPath" else name): value for name, value in column.items()}


def _new_column(column: dict[str, Any]) -> dict[str, Any]:
    return {("jsonPath" if name == "JSONPath" else name): value for name, value in column.items()}


def _old_conversion(conversion: dict[str, Any]) -> dict[str, Any]:
    made = {"strategy": conversion.get("strategy", "")}
    webhook = conversion.get("webhook")
    if webhook is not None:
        if webhook.get("clientConfig") is not None:
            made["webhookClientConfig"] = webhook["clientConfig"]
        if webhook.get("conversionReviewVersions"):
            made["conversionReviewVersions"] = webhook["conversionReviewVersions"]
    return made


def _new_conversion(conversion: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"strategy": conversion.get("strategy", "")}
    client, versions = conversion.get("webhookClientConfig"), conversion.get("conversionReviewVersions")
    if client is not None or versions is not None:
        made["webhook"] = {} if client is None else {"clientConfig": client}
        made["webhook"]["conversionReviewVersions"] = versions or ["v1beta1"]
    return made
