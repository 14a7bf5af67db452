"""Specs of persistent volume claims, and the templates that pods make claims from."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.pod_spec.resources import amount
from pilothouse.apis.metadata import validate_annotations, validate_labels
from pilothouse.apis.selectors import validate_label_selector
from pilothouse.apis.validating import NOT_POSITIVE, present, well_formed
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.names import check_dns1123_label, check_dns1123_subdomain

Struct = dict[str, Any]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_CLAIM: Final = "PersistentVolumeClaim"
_METADATA_FIELDS: Final = {
    "name": "name", "generateName": "generateName", "namespace": "namespace", "selfLink": "selfLink", "uid": "uID",
    "resourceVersion": "resourceVersion", "generation": "generation", "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp", "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences", "finalizers": "finalizers", "managedFields": "managedFields",
}  # fmt: skip


def validate_claim_template(template: Struct, path: Path, errs: list[FieldError]) -> None:
    """Faults of the template of an ephemeral volume's claim."""
    validate_template_metadata(template["metadata"], path.child("metadata"), errs)
    validate_claim_spec(template["spec"], path.child("spec"), errs)


def validate_template_metadata(metadata: Struct, path: Path, errs: list[FieldError]) -> None:
    """Metadata of templates in which only labels and annotations count."""
    if not metadata:
        return
    validate_annotations(metadata.get("annotations") or {}, path.child("annotations"), errs)
    validate_labels(metadata.get("labels") or {}, path.child("labels"), errs)
    extra = [shown for key, shown in _METADATA_FIELDS.items() if key in metadata]
    errs += (forbidden(path.child(shown), "cannot be set") for shown in extra)


def validate_claim_spec(
    spec: Struct,
    path: Path,
    errs: list[FieldError],
    *,
    allow_invalid_selector_values: bool = False,
    allow_invalid_source_group: bool = False,
) -> None:
    """Faults of a claim's spec; the options are for claims that were stored with them."""
    modes = spec.get("accessModes") or ()
    if not modes:
        errs.append(required(path.child("accessModes"), "at least 1 access mode is required"))
    selector = spec.get("selector")
    if selector:
        where = path.child("selector")
        validate_label_selector(selector, where, errs, allow_invalid_values=allow_invalid_selector_values)
    unknown = [mode for mode in modes if mode not in ACCESS_MODES]
    errs += (not_supported(path.child("accessModes"), mode, ACCESS_MODES) for mode in unknown)
    if "ReadWriteOncePod" in modes and len({*modes} - {*unknown}) > 1:
        errs.append(forbidden(path.child("accessModes"), "may not use ReadWriteOncePod with other access modes"))
    _validate_size(spec, path, errs)
    if spec.get("storageClassName"):
        well_formed(spec["storageClassName"], check_dns1123_subdomain, path, "storageClassName", errs)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errs.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    _validate_sources(spec, path, errs, allow_invalid_source_group)
    if spec.get("volumeAttributesClassName"):
        name = "volumeAttributesClassName"
        well_formed(spec[name], check_dns1123_subdomain, path, name, errs)


def _validate_size(spec: Struct, path: Path, errs: list[FieldError]) -> None:
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    where = path.child("resources").key("storage")
    if size is None:
        errs.append(required(where, ""))
    elif amount(size).sign <= 0:
        errs.append(invalid(where, size, NOT_POSITIVE))


def _validate_sources(spec: Struct, path: Path, errs: list[FieldError], allow_invalid_group: bool) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        _validate_source(source, path.child("dataSource"), errs, allow_invalid_group)
    if reference is None:
        return
    _validate_source(reference, path.child("dataSourceRef"), errs, allow_invalid_group)
    namespace = reference.get("namespace")
    if namespace:
        well_formed(namespace, check_dns1123_label, path.child("dataSourceRef"), "namespace", errs)
    if source is None:
        return
    # The original passes a path as the value, and a path shows as an empty object.
    if namespace:
        errs.append(invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        errs.append(invalid(path, {}, "must match dataSourceRef"))


def _validate_source(source: Struct, path: Path, errs: list[FieldError], allow_invalid_group: bool) -> None:
    present(source.get("name"), path, "name", errs)
    present(source.get("kind"), path, "kind", errs)
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != _CLAIM:
        errs.append(invalid(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup"))
    if group and not allow_invalid_group:
        well_formed(group, check_dns1123_subdomain, path, "apiGroup", errs)
