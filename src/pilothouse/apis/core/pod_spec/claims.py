"""The templates that pods make volume claims from."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.core.persistent_volume_claim import validation as claim_validation
from pilothouse.apis.metadata import validate_annotations, validate_labels
from pilothouse.machinery.field_errors import FieldError, Path, forbidden
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given

# Go's names with a small first letter, in the order of the struct.
_METADATA_FIELDS: Final = {
    "name": "name", "generateName": "generateName", "namespace": "namespace", "selfLink": "selfLink", "uid": "uID",
    "resourceVersion": "resourceVersion", "generation": "generation", "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp", "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences", "finalizers": "finalizers", "managedFields": "managedFields",
}  # fmt: skip


def validate_claim_template(template: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of the template of an ephemeral volume's claim."""
    validate_template_metadata(template.get("metadata", {}), path.child("metadata"), errs)
    validate_claim_spec(template["spec"], path.child("spec"), errs)


def validate_template_metadata(metadata: Object, path: Path, errs: list[FieldError]) -> None:
    """Metadata of templates in which only labels and annotations count."""
    validate_annotations(metadata.get("annotations") or {}, path.child("annotations"), errs)
    validate_labels(metadata.get("labels") or {}, path.child("labels"), errs)
    extra = [shown for key, shown in _METADATA_FIELDS.items() if as_given(metadata, key) is not None]
    errs += (forbidden(path.child(shown), "cannot be set") for shown in extra)


def validate_claim_spec(spec: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of a new claim's spec."""
    errs += claim_validation.validate_claim_spec(path, spec)
